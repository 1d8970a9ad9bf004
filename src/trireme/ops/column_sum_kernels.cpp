#include <algorithm>

#include "trireme/ops/column_sums.h"
#include "trireme/ops/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/column_sum_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {

// Four vectors of columns at a time, whose sums run beside each other.
void column_sums_for(int64_t rows, int64_t columns, const float* x, int64_t stride, float* out, bool accumulate) {
  constexpr int64_t kRows = 128;
  constexpr int kVectors = 4;
  const F32 d;
  int64_t j = 0;
  for (; j + kVectors * kLanes <= columns; j += kVectors * kLanes) {
    V32 total[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) total[v] = accumulate ? hn::LoadU(d, out + j + v * kLanes) : hn::Zero(d);
    for (int64_t from = 0; from < rows; from += kRows) {
      V32 sums[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
      const int64_t end = std::min(rows, from + kRows);
      for (int64_t i = from; i < end; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], hn::LoadU(d, x + i * stride + j + v * kLanes));
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sums[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(total[v], d, out + j + v * kLanes);
  }
  each_vector(columns - j, [&](int64_t v, int64_t lanes) HWY_ATTR {
    auto total = accumulate ? load_lanes(out + j + v, lanes) : hn::Zero(d);
    for (int64_t from = 0; from < rows; from += kRows) {
      auto sum = hn::Zero(d);
      for (int64_t i = from; i < std::min(rows, from + kRows); ++i)
        sum = hn::Add(sum, load_lanes(x + i * stride + j + v, lanes));
      total = hn::Add(total, sum);
    }
    store_lanes(total, out + j + v, lanes);
  });
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(column_sums_for);

void column_sums(int64_t rows, int64_t columns, const float* x, int64_t stride, float* out, bool accumulate) {
  constexpr int64_t kColumns = 64;
  const int64_t parts = rows * columns < (1 << 15) ? 1 : (columns + kColumns - 1) / kColumns;
  const int64_t part_columns = parts == 1 ? columns : kColumns;
  parallel(parts, [&](int64_t part) {
    const int64_t j = part * part_columns;
    HWY_DYNAMIC_DISPATCH(column_sums_for)
    (rows, std::min(part_columns, columns - j), x + j, stride, out + j, accumulate);
  });
}

}  // namespace trireme::ops
#endif
