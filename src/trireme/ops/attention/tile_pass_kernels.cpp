#include <algorithm>

#include "trireme/ops/attention/tile_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/attention/tile_pass_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/random_place-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {
using internal::ScoreBlock;

// How many of the block's columns its row sees.
HWY_INLINE int64_t seen(const ScoreBlock& block, int64_t row) {
  if (!block.causal) return block.columns;
  return std::clamp<int64_t>(block.query + row - block.key + 1, 0, block.columns);
}
HWY_INLINE void clear(float* x, int64_t from, int64_t to) { std::fill(x + from, x + std::max(from, to), 0.0f); }

void score_weights_for(const ScoreBlock& block, float* s, float* m, float* l, float* shrink) {
  const F32 d;
  const auto scale = constant(block.scale);
  for (int64_t row = 0; row < block.rows; ++row, s += block.stride) {
    const int64_t count = seen(block, row), whole = count / kLanes * kLanes, rest = count - whole;
    auto most = constant(m[row]);
    for (int64_t j = 0; j < whole; j += kLanes) most = hn::Max(hn::LoadU(d, s + j), most);
    if (rest > 0) {
      const auto last =
          hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(rest)), load_first(s + whole, rest), most);
      most = hn::Max(last, most);
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(d, most)), before = m[row];
    m[row] = largest;
    const auto offset = constant(block.scale * largest);
    const RowDropout drop(block.dropout, block.seed, static_cast<uint64_t>(block.query + row));
    auto sum = hn::Zero(d);
    each_vector(count, [&](int64_t j, int64_t lanes) HWY_ATTR {
      auto p = exp(hn::MulSub(load_lanes(s + j, lanes), scale, offset));
      if (lanes < kLanes) p = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(lanes)), p);
      sum = hn::Add(sum, p);
      if (block.dropout > 0) p = hn::Mul(p, drop(block.key + j));
      store_lanes(p, s + j, lanes);
    });
    clear(s, count, block.columns);
    shrink[row] = count == 0 ? 1 : hn::GetLane(exp(constant(block.scale * (before - largest))));
    l[row] = l[row] * shrink[row] + hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

void scale_rows_for(int64_t rows, int64_t columns, float* x, int64_t stride, const float* factor) {
  for (int64_t row = 0; row < rows; ++row, x += stride) {
    const auto by = constant(factor[row]);
    each_vector(columns, [&](int64_t j, int64_t lanes)
                             HWY_ATTR { store_lanes(hn::Mul(load_lanes(x + j, lanes), by), x + j, lanes); });
  }
}

void score_gradients_for(const ScoreBlock& block, float* s, float* d, const float* sums, const float* inner) {
  const auto scale = constant(block.scale);
  for (int64_t row = 0; row < block.rows; ++row, s += block.stride, d += block.stride) {
    const int64_t count = seen(block, row);
    const auto offset = constant(sums[row]), mean = constant(inner[row]);
    const RowDropout drop(block.dropout, block.seed, static_cast<uint64_t>(block.query + row));
    each_vector(count, [&](int64_t j, int64_t lanes) HWY_ATTR {
      const auto p = exp(hn::MulSub(load_lanes(s + j, lanes), scale, offset));
      auto kept = p, through = load_lanes(d + j, lanes);
      if (block.dropout > 0) {
        const auto factor = drop(block.key + j);
        kept = hn::Mul(kept, factor);
        through = hn::Mul(through, factor);
      }
      store_lanes(kept, s + j, lanes);
      store_lanes(hn::Mul(hn::Mul(p, hn::Sub(through, mean)), scale), d + j, lanes);
    });
    clear(s, count, block.columns);
    clear(d, count, block.columns);
  }
}

void row_products_for(int64_t rows, int64_t columns, const float* x, int64_t x_stride, const float* y, int64_t y_stride,
                      float* out) {
  const F32 d;
  for (int64_t row = 0; row < rows; ++row) {
    auto sum = hn::Zero(d);
    each_vector(columns, [&](int64_t j, int64_t lanes) HWY_ATTR {
      sum = hn::MulAdd(load_lanes(x + row * x_stride + j, lanes), load_lanes(y + row * y_stride + j, lanes), sum);
    });
    out[row] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(score_weights_for);
HWY_EXPORT(scale_rows_for);
HWY_EXPORT(score_gradients_for);
HWY_EXPORT(row_products_for);

namespace internal {

void score_weights(const ScoreBlock& block, float* s, float* m, float* l, float* shrink) {
  HWY_DYNAMIC_DISPATCH(score_weights_for)(block, s, m, l, shrink);
}
void scale_rows(int64_t rows, int64_t columns, float* x, int64_t stride, const float* factor) {
  HWY_DYNAMIC_DISPATCH(scale_rows_for)(rows, columns, x, stride, factor);
}
void score_gradients(const ScoreBlock& block, float* s, float* d, const float* sums, const float* inner) {
  HWY_DYNAMIC_DISPATCH(score_gradients_for)(block, s, d, sums, inner);
}
void row_products(int64_t rows, int64_t columns, const float* x, int64_t x_stride, const float* y, int64_t y_stride,
                  float* out) {
  HWY_DYNAMIC_DISPATCH(row_products_for)(rows, columns, x, x_stride, y, y_stride, out);
}

}  // namespace internal
}  // namespace trireme::ops
#endif
