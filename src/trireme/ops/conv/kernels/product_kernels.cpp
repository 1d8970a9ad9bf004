#include "trireme/ops/conv/kernels/product_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/conv/kernels/product_kernels.cpp"
#include "trireme/ops/conv/kernels/targets.h"
// After targets.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::conv_kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::CappedTag<float, kStrip>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));
constexpr int kParts = static_cast<int>(kStrip) / kLanes;  // vectors of a strip
constexpr int kRegisters = kLanes == 16 ? 32 : 16;

// How many rows fit the registers beside `strips` strips of the right factor.
constexpr int rows_at_a_time(int strips) {
  const int vectors = strips * kParts;
  return std::clamp((kRegisters - vectors - 1) / vectors / 2 * 2, 1, 12);
}
constexpr int kMostStrips = std::max(1, 4 / kParts);

template <int kRows, int kStrips>
using Sums = hn::Vec<F32>[kRows][kStrips * kParts];

template <int kRows, int kStrips>
HWY_INLINE void clear(Sums<kRows, kStrips>& sums) {
  const F32 d;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kStrips * kParts; ++v) sums[i][v] = hn::Zero(d);
  }
}

// sums += left(i) · the row of the right factor at `right`.
template <int kRows, int kStrips, class Left>
HWY_INLINE void add_products(Sums<kRows, kStrips>& sums, const float* right, int64_t strip, const Left& left) {
  const F32 d;
  hn::Vec<F32> factors[kStrips * kParts];
#pragma GCC unroll 16
  for (int v = 0; v < kStrips * kParts; ++v) {
    factors[v] = hn::Load(d, right + v / kParts * strip + v % kParts * kLanes);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const auto one = hn::Set(d, left(i));
#pragma GCC unroll 16
    for (int v = 0; v < kStrips * kParts; ++v) sums[i][v] = hn::MulAdd(one, factors[v], sums[i][v]);
  }
}

template <int kRows, int kStrips>
void rows_block(const RowsProduct& it, int64_t row, int64_t column) {
  const F32 d;
  const float* right = it.right + column / kStrip * it.right_strip;
  Sums<kRows, kStrips> sums;
  clear<kRows, kStrips>(sums);
  for (int64_t t = 0; t < it.tap_count; ++t) {
    const float* left[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) left[i] = it.rows[row + i] + it.taps[t];
    for (int64_t l = 0; l < it.run; ++l) {
      add_products<kRows, kStrips>(sums, right, it.right_strip, [&](int i) HWY_ATTR { return left[i][l]; });
      right += kStrip;
    }
  }
  const int64_t columns = std::min<int64_t>(kStrips * kStrip, it.columns - column);
  HWY_ALIGN float bias[kStrips * kStrip] = {};
  if (it.bias != nullptr) std::memcpy(bias, it.bias + column, static_cast<std::size_t>(columns) * sizeof(float));
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    float* out = it.out[row + i] + it.out_offset + column;
    if (columns == kStrips * kStrip) {
#pragma GCC unroll 16
      for (int v = 0; v < kStrips * kParts; ++v) {
        auto sum = hn::Add(sums[i][v], hn::Load(d, bias + v * kLanes));
        if (it.accumulate) sum = hn::Add(sum, hn::LoadU(d, out + v * kLanes));
        hn::StoreU(sum, d, out + v * kLanes);
      }
    } else {
      HWY_ALIGN float part[kStrips * kStrip];
#pragma GCC unroll 16
      for (int v = 0; v < kStrips * kParts; ++v) {
        hn::Store(hn::Add(sums[i][v], hn::Load(d, bias + v * kLanes)), d, part + v * kLanes);
      }
      for (int64_t j = 0; j < columns; ++j) out[j] = it.accumulate ? part[j] + out[j] : part[j];
    }
  }
}

template <int kRows, int kStrips>
void columns_block(const ColumnsProduct& it, int64_t row, int64_t strip) {
  const F32 d;
  const float* right = it.right + strip * it.right_strip;
  const int64_t offset = it.left_offset + row;
  Sums<kRows, kStrips> sums;
  clear<kRows, kStrips>(sums);
  for (int64_t l = 0; l < it.length; ++l) {
    const float* left = it.left[l] + offset;
    add_products<kRows, kStrips>(sums, right, it.right_strip, [&](int i) HWY_ATTR { return left[i]; });
    right += kStrip;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kStrips * kParts; ++v) {
      float* out = it.out + (strip + v / kParts) * it.out_strip + (row + i) * kStrip + v % kParts * kLanes;
      hn::Store(it.accumulate ? hn::Add(sums[i][v], hn::Load(d, out)) : sums[i][v], d, out);
    }
  }
}

// Calls block.template operator()<kRows, kStrips>(row) for as many rows at a time as fit, then fewer.
template <int kStrips, int kRows, class Block>
HWY_INLINE void each_rows(int64_t row, int64_t count, const Block& block) {
  for (; row + kRows <= count; row += kRows) block.template operator()<kRows, kStrips>(row);
  if constexpr (kRows > 1) {
    constexpr int kFewer = kRows > 8 ? 8 : kRows > 4 ? 4 : kRows > 2 ? 2 : 1;
    if (row < count) each_rows<kStrips, kFewer>(row, count, block);
  }
}

// The strips in groups that are as even as can be.
template <class Block>
HWY_INLINE void each_strips(int64_t rows, int64_t count, const Block& block) {
  for (int64_t strip = 0; strip < count;) {
    const int64_t left = count - strip;
    const int64_t now = left <= kMostStrips ? left : left == kMostStrips + 1 ? (left + 1) / 2 : kMostStrips;
    const auto run = [&]<int kStrips>() HWY_ATTR {
      const auto at = [&]<int kRows, int kSame>(int64_t row)
                          HWY_ATTR { block.template operator()<kRows, kSame>(row, strip); };
      each_rows<kStrips, rows_at_a_time(kStrips)>(0, rows, at);
    };
    if (now == 1) run.template operator()<1>();
    if constexpr (kMostStrips > 1) {
      if (now == 2) run.template operator()<2>();
      if (now == 3) run.template operator()<3>();
      if (now == 4) run.template operator()<4>();
    }
    strip += now;
  }
}

void multiply_rows(const RowsProduct& it) {
  each_strips(it.row_count, strips(it.columns), [&]<int kRows, int kStrips>(int64_t row, int64_t strip) HWY_ATTR {
    rows_block<kRows, kStrips>(it, row, strip * kStrip);
  });
}

void multiply_columns(const ColumnsProduct& it) {
  each_strips(it.row_count, it.strip_count, [&]<int kRows, int kStrips>(int64_t row, int64_t strip) HWY_ATTR {
    columns_block<kRows, kStrips>(it, row, strip);
  });
}

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kSquare = 1;
HWY_INLINE void transpose_square(const float* from, int64_t, float* to, int64_t) { *to = *from; }
#else
constexpr int64_t kSquare = 4;

// Four rows of four, transposed.
HWY_INLINE void transpose_square(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto ac = hn::InterleaveLower(d, a, c), be = hn::InterleaveLower(d, b, e);
  const auto ac2 = hn::InterleaveUpper(d, a, c), be2 = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, ac, be), d, to);
  hn::StoreU(hn::InterleaveUpper(d, ac, be), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, ac2, be2), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, ac2, be2), d, to + 3 * to_stride);
}
#endif

void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to, int64_t to_stride) {
  const int64_t whole_rows = rows / kSquare * kSquare, whole_columns = columns / kSquare * kSquare;
  for (int64_t i = 0; i < whole_rows; i += kSquare) {
    for (int64_t j = 0; j < whole_columns; j += kSquare) {
      transpose_square(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace trireme::ops::conv_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops::conv_kernels {

HWY_EXPORT(multiply_rows);
HWY_EXPORT(multiply_columns);
HWY_EXPORT(transpose);

void multiply(const RowsProduct& product) { HWY_DYNAMIC_DISPATCH(multiply_rows)(product); }
void multiply(const ColumnsProduct& product) { HWY_DYNAMIC_DISPATCH(multiply_columns)(product); }

void to_strip(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  if (rows < kStrip) std::fill_n(to, columns * kStrip, 0.0f);
  HWY_DYNAMIC_DISPATCH(transpose)(from, stride, rows, columns, to, kStrip);
}

void from_strip(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  HWY_DYNAMIC_DISPATCH(transpose)(from, kStrip, columns, rows, to, stride);
}

void copy_strip(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; ++i, from += stride, to += kStrip) {
    if (columns == kStrip) {
      std::memcpy(to, from, sizeof(float) * kStrip);
    } else {
      for (int64_t j = 0; j < kStrip; ++j) to[j] = j < columns ? from[j] : 0.0f;
    }
  }
}

void add(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace trireme::ops::conv_kernels
#endif
