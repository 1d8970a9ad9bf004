// The products of powersgd, for every SIMD target, four columns of a factor at a time. Sums of M·Q run in 16 lanes,
// column j of M in lane j mod 16, which are then folded in halves; those of Mᵀ·P from the first row to the last: the
// same bits for every width of vectors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "trireme/compress/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/low_rank_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());
constexpr std::size_t kParts = kColumn / kLanes;  // vectors of a group of 16 lanes
static_assert(kColumn % kLanes == 0);

HWY_INLINE std::size_t row_length(const Matrix& shape, std::size_t row) {
  return std::min(shape.cols, shape.count - row * shape.cols);
}

// Runs body(j, pointer to 16 elements) over a row; the last of them by way of a copy with zeros.
template <class Body>
HWY_INLINE void sixteens(const float* row, std::size_t n, const Body& body) {
  std::size_t j = 0;
  for (; j + kColumn <= n; j += kColumn) body(j, row + j);
  if (j < n) {
    HWY_ALIGN float part[kColumn] = {};
    std::memcpy(part, row + j, (n - j) * sizeof(float));
    body(j, part);
  }
}

template <std::size_t kRank>
HWY_INLINE void times_row(const float* row, std::size_t n, const float* q, std::size_t q_stride, float* p,
                          std::size_t p_stride) {
  const F32 d;
  hn::Vec<F32> sums[kRank][kParts];
  for (auto& lanes : sums) {
    for (auto& sum : lanes) sum = hn::Zero(d);
  }
  sixteens(row, n, [&](std::size_t j, const float* m) HWY_ATTR {
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto v = hn::LoadU(d, m + part * kLanes);
      for (std::size_t k = 0; k < kRank; ++k) {
        const auto w = hn::Load(d, q + k * q_stride + j + part * kLanes);
        sums[k][part] = hn::Add(sums[k][part], hn::Mul(v, w));
      }
    }
  });
  for (std::size_t k = 0; k < kRank; ++k) {
    HWY_ALIGN float lanes[kColumn];
    for (std::size_t part = 0; part < kParts; ++part) hn::Store(sums[k][part], d, lanes + part * kLanes);
    for (std::size_t half = kColumn / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    p[k * p_stride] = lanes[0];
  }
}

// Runs body<columns>(first column) over all columns of a factor.
template <class Body>
HWY_INLINE void fours(std::size_t rank, const Body& body) {
  std::size_t k = 0;
  for (; k + 4 <= rank; k += 4) body(std::integral_constant<std::size_t, 4>(), k);
  if (rank - k >= 2) {
    body(std::integral_constant<std::size_t, 2>(), k);
    k += 2;
  }
  if (k < rank) body(std::integral_constant<std::size_t, 1>(), k);
}

void times_for(const Matrix& shape, const float* m, const float* q, std::size_t rank, float* p) {
  const std::size_t q_stride = column_stride(shape.cols), p_stride = column_stride(shape.rows);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    fours(rank, [&](auto columns, std::size_t k) HWY_ATTR {
      times_row<columns>(m + i * shape.cols, row_length(shape, i), q + k * q_stride, q_stride, p + k * p_stride + i,
                         p_stride);
    });
  }
}

// Some rows at a time, so that Q is not loaded and stored for each.
constexpr std::size_t kRows = 8;

template <std::size_t kRank>
HWY_INLINE void add_rows(const float* const* rows, std::size_t count, std::size_t n, const float* p,
                         std::size_t p_stride, float* q, std::size_t q_stride) {
  const F32 d;
  for (std::size_t j = 0; j < n; j += kLanes) {
    hn::Vec<F32> sums[kRank];
    for (std::size_t k = 0; k < kRank; ++k) sums[k] = hn::Load(d, q + k * q_stride + j);
    for (std::size_t i = 0; i < count; ++i) {
      const auto v = hn::LoadU(d, rows[i] + j);
      for (std::size_t k = 0; k < kRank; ++k) sums[k] = hn::Add(sums[k], hn::Mul(v, hn::Set(d, p[k * p_stride + i])));
    }
    for (std::size_t k = 0; k < kRank; ++k) hn::Store(sums[k], d, q + k * q_stride + j);
  }
}

void transposed_times_for(const Matrix& shape, const float* m, const float* p, std::size_t rank, float* q) {
  const std::size_t q_stride = column_stride(shape.cols), p_stride = column_stride(shape.rows);
  std::fill_n(q, rank * q_stride, 0.0f);
  for (std::size_t i = 0; i < shape.rows; i += kRows) {
    const std::size_t count = std::min(kRows, shape.rows - i);
    // All rows in whole groups of 16, then what is left of each in one more, filled with zeros.
    const std::size_t whole = row_length(shape, i + count - 1) / kColumn * kColumn;
    const float* rows[kRows];
    HWY_ALIGN float ends[kRows][kColumn];
    for (std::size_t k = 0; k < count; ++k) rows[k] = m + (i + k) * shape.cols;
    fours(rank, [&](auto columns, std::size_t k) HWY_ATTR {
      add_rows<columns>(rows, count, whole, p + k * p_stride + i, p_stride, q + k * q_stride, q_stride);
    });
    for (std::size_t j = whole; j < shape.cols; j += kColumn) {
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t length = row_length(shape, i + k);
        const std::size_t some = length > j ? std::min(kColumn, length - j) : 0;
        std::fill_n(ends[k], kColumn, 0.0f);
        if (some > 0) std::memcpy(ends[k], m + (i + k) * shape.cols + j, some * sizeof(float));
        rows[k] = ends[k];
      }
      fours(rank, [&](auto columns, std::size_t k) HWY_ATTR {
        add_rows<columns>(rows, count, kColumn, p + k * p_stride + i, p_stride, q + k * q_stride + j, q_stride);
      });
    }
  }
}

template <class To>
HWY_INLINE void expand_to(const Matrix& shape, const float* p, const float* q, std::size_t rank, int exponent,
                          float* out, const To& to) {
  const F32 d;
  const std::size_t q_stride = column_stride(shape.cols), p_stride = column_stride(shape.rows);
  const float grow = std::ldexp(1.0f, exponent), most = std::ldexp(std::numeric_limits<float>::max(), -exponent);
  const auto high = hn::Set(d, most), low = hn::Set(d, -most), by = hn::Set(d, grow);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    float* const row = out + i * shape.cols;
    const std::size_t n = row_length(shape, i);
    const auto value = [&](std::size_t j) HWY_ATTR {
      auto sum = hn::Mul(hn::Set(d, p[i]), hn::Load(d, q + j));
      for (std::size_t k = 1; k < rank; ++k) {
        sum = hn::Add(sum, hn::Mul(hn::Set(d, p[k * p_stride + i]), hn::Load(d, q + k * q_stride + j)));
      }
      return hn::Mul(hn::Min(hn::Max(sum, low), high), by);
    };
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) hn::StoreU(to(hn::LoadU(d, row + j), value(j)), d, row + j);
    if (j < n) {
      HWY_ALIGN float part[kLanes] = {};
      std::memcpy(part, row + j, (n - j) * sizeof(float));
      hn::Store(to(hn::Load(d, part), value(j)), d, part);
      std::memcpy(row + j, part, (n - j) * sizeof(float));
    }
  }
}

void expand_for(const Matrix& shape, const float* p, const float* q, std::size_t rank, int exponent, Expand how,
                float factor, float* out) {
  switch (how) {
    case Expand::put:
      return expand_to(shape, p, q, rank, exponent, out, [](auto, auto x) HWY_ATTR { return x; });
    case Expand::add:
      return expand_to(shape, p, q, rank, exponent, out,
                       [&](auto old, auto x) HWY_ATTR { return hn::Add(old, hn::Mul(hn::Set(F32(), factor), x)); });
    case Expand::take_off:
      return expand_to(shape, p, q, rank, exponent, out, [](auto old, auto x) HWY_ATTR { return hn::Sub(old, x); });
  }
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(times_for);
HWY_EXPORT(transposed_times_for);
HWY_EXPORT(expand_for);

void times(const Matrix& shape, const float* m, const float* q, std::size_t rank, float* p) {
  HWY_DYNAMIC_DISPATCH(times_for)(shape, m, q, rank, p);
}
void transposed_times(const Matrix& shape, const float* m, const float* p, std::size_t rank, float* q) {
  HWY_DYNAMIC_DISPATCH(transposed_times_for)(shape, m, p, rank, q);
}
void expand(const Matrix& shape, const float* p, const float* q, std::size_t rank, int exponent, Expand how,
            float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(expand_for)(shape, p, q, rank, exponent, how, factor, out);
}

}  // namespace trireme::compress::kernels
#endif
