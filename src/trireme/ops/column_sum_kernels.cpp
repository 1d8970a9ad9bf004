#include <algorithm>

#include "trireme/ops/aligned.h"
#include "trireme/ops/column_sums.h"
#include "trireme/ops/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/column_sum_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {

// out += the sums over few rows, four rows at a time, in the order in which they lie in memory.
void add_rows_for(int64_t rows, int64_t columns, const float* x, int64_t stride, float* out) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float* row = x + i * stride;
    each_vector(columns, [&](int64_t j, int64_t lanes) HWY_ATTR {
      const auto first = hn::Add(load_lanes(row + j, lanes), load_lanes(row + stride + j, lanes));
      const auto second = hn::Add(load_lanes(row + 2 * stride + j, lanes), load_lanes(row + 3 * stride + j, lanes));
      store_lanes(hn::Add(load_lanes(out + j, lanes), hn::Add(first, second)), out + j, lanes);
    });
  }
  for (; i < rows; ++i) {
    each_vector(columns, [&](int64_t j, int64_t lanes) HWY_ATTR {
      store_lanes(hn::Add(load_lanes(out + j, lanes), load_lanes(x + i * stride + j, lanes)), out + j, lanes);
    });
  }
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(add_rows_for);

// Parts of rows, as many as the rows alone say, each with sums of its own; then those in order.
void column_sums(int64_t rows, int64_t columns, const float* x, int64_t stride, float* out, bool accumulate) {
  constexpr int64_t kRows = 128, kMostParts = 64;
  const int64_t together = std::max(kRows, (rows + kMostParts - 1) / kMostParts);
  const int64_t parts = (rows + together - 1) / together;
  if (!accumulate) std::fill_n(out, columns, 0.0f);
  AlignedFloats sums(parts * columns);
  parallel(parts, [&](int64_t part) {
    float* own = sums.data() + part * columns;
    std::fill_n(own, columns, 0.0f);
    const int64_t first = part * together;
    HWY_DYNAMIC_DISPATCH(add_rows_for)(std::min(together, rows - first), columns, x + first * stride, stride, own);
  });
  HWY_DYNAMIC_DISPATCH(add_rows_for)(parts, columns, sums.data(), columns, out);
}

}  // namespace trireme::ops
#endif
