#include "trireme/ops/rows/row_kernels.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/rows/row_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {
using internal::RowSums;

HWY_INLINE float total(V32 v) { return hn::GetLane(hn::SumOfLanes(F32(), v)); }
// What lies behind the row's end counts nothing.
HWY_INLINE V32 only(V32 v, int64_t lanes) {
  return lanes == kLanes ? v : hn::IfThenElseZero(hn::FirstN(F32(), static_cast<std::size_t>(lanes)), v);
}
HWY_INLINE V32 gain(const float* gamma, int64_t j, int64_t lanes) {
  return gamma == nullptr ? constant(1.0f) : load_lanes(gamma + j, lanes);
}

void layer_norm_row_for(int64_t n, float epsilon, const float* x, const float* gamma, const float* beta, float* y,
                        float* mean_out, float* rstd_out) {
  const F32 d;
  auto sum = hn::Zero(d), squares = hn::Zero(d);
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR { sum = hn::Add(sum, load_lanes(x + j, lanes)); });
  const float mean = total(sum) / static_cast<float>(n);
  const auto center = constant(mean);
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const auto away = only(hn::Sub(load_lanes(x + j, lanes), center), lanes);
    squares = hn::MulAdd(away, away, squares);
  });
  const float rstd = 1 / std::sqrt(total(squares) / static_cast<float>(n) + epsilon);
  const auto scale = constant(rstd);
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const auto unit = hn::Mul(hn::Sub(load_lanes(x + j, lanes), center), scale);
    const auto shift = beta == nullptr ? hn::Zero(d) : load_lanes(beta + j, lanes);
    store_lanes(hn::MulAdd(unit, gain(gamma, j, lanes), shift), y + j, lanes);
  });
  *mean_out = mean;
  *rstd_out = rstd;
}

// With u = (x − mean)·rstd and g = d_y·gamma: d_x = rstd·(g − mean of g − u·mean of g∘u).
void layer_norm_row_backward_for(int64_t n, const float* x, const float* gamma, float mean, float rstd,
                                 const float* d_y, float* d_x, float* d_gamma, float* d_beta) {
  const F32 d;
  const auto center = constant(mean), scale = constant(rstd);
  auto sum = hn::Zero(d), products = hn::Zero(d);
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const auto unit = hn::Mul(hn::Sub(load_lanes(x + j, lanes), center), scale), d_row = load_lanes(d_y + j, lanes);
    const auto g = hn::Mul(d_row, gain(gamma, j, lanes));
    sum = hn::Add(sum, only(g, lanes));
    products = hn::MulAdd(only(g, lanes), unit, products);
    if (d_gamma != nullptr) store_lanes(hn::MulAdd(d_row, unit, load_lanes(d_gamma + j, lanes)), d_gamma + j, lanes);
    if (d_beta != nullptr) store_lanes(hn::Add(d_row, load_lanes(d_beta + j, lanes)), d_beta + j, lanes);
  });
  const auto sum_mean = constant(total(sum) / static_cast<float>(n));
  const auto product_mean = constant(total(products) / static_cast<float>(n));
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const auto unit = hn::Mul(hn::Sub(load_lanes(x + j, lanes), center), scale);
    const auto g = hn::Mul(load_lanes(d_y + j, lanes), gain(gamma, j, lanes));
    store_lanes(hn::Mul(scale, hn::NegMulAdd(unit, product_mean, hn::Sub(g, sum_mean))), d_x + j, lanes);
  });
}

HWY_INLINE float largest(int64_t n, const float* x) {
  const F32 d;
  auto most = constant(-std::numeric_limits<float>::infinity());
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    auto v = load_lanes(x + j, lanes);
    if (lanes < kLanes) v = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(lanes)), v, most);
    most = hn::Max(v, most);
  });
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

void softmax_row_for(int64_t n, const float* x, float* y) {
  const auto offset = constant(largest(n, x));
  auto sum = hn::Zero(F32());
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const auto e = exp(hn::Sub(load_lanes(x + j, lanes), offset));
    sum = hn::Add(sum, only(e, lanes));
    store_lanes(e, y + j, lanes);
  });
  const auto scale = constant(1 / total(sum));
  each_vector(n, [&](int64_t j, int64_t lanes)
                     HWY_ATTR { store_lanes(hn::Mul(load_lanes(y + j, lanes), scale), y + j, lanes); });
}

void softmax_row_backward_for(int64_t n, const float* y, const float* d_y, float* d_x) {
  auto sum = hn::Zero(F32());
  each_vector(n, [&](int64_t j, int64_t lanes)
                     HWY_ATTR { sum = hn::MulAdd(load_lanes(y + j, lanes), load_lanes(d_y + j, lanes), sum); });
  const auto inner = constant(total(sum));
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    store_lanes(hn::Mul(load_lanes(y + j, lanes), hn::Sub(load_lanes(d_y + j, lanes), inner)), d_x + j, lanes);
  });
}

RowSums row_sums_for(int64_t n, const float* x) {
  const float most = largest(n, x);
  const auto offset = constant(most);
  auto sum = hn::Zero(F32()), plain = hn::Zero(F32());
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const auto v = load_lanes(x + j, lanes);
    plain = hn::Add(plain, v);
    sum = hn::Add(sum, only(exp(hn::Sub(v, offset)), lanes));
  });
  return {most + std::log(total(sum)), total(plain)};
}

void row_exponentials_for(int64_t n, const float* x, float offset, float a, float b, float* y) {
  const auto from = constant(offset), factor = constant(a), term = constant(b);
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    store_lanes(hn::MulAdd(factor, exp(hn::Sub(load_lanes(x + j, lanes), from)), term), y + j, lanes);
  });
}

void add_row_for(int64_t n, const float* x, float* y) {
  each_vector(n, [&](int64_t j, int64_t lanes) HWY_ATTR {
    store_lanes(hn::Add(load_lanes(y + j, lanes), load_lanes(x + j, lanes)), y + j, lanes);
  });
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(layer_norm_row_for);
HWY_EXPORT(layer_norm_row_backward_for);
HWY_EXPORT(softmax_row_for);
HWY_EXPORT(softmax_row_backward_for);
HWY_EXPORT(row_sums_for);
HWY_EXPORT(row_exponentials_for);
HWY_EXPORT(add_row_for);

namespace internal {

void layer_norm_row(int64_t n, float epsilon, const float* x, const float* gamma, const float* beta, float* y,
                    float* mean, float* rstd) {
  HWY_DYNAMIC_DISPATCH(layer_norm_row_for)(n, epsilon, x, gamma, beta, y, mean, rstd);
}
void layer_norm_row_backward(int64_t n, const float* x, const float* gamma, float mean, float rstd, const float* d_y,
                             float* d_x, float* d_gamma, float* d_beta) {
  HWY_DYNAMIC_DISPATCH(layer_norm_row_backward_for)(n, x, gamma, mean, rstd, d_y, d_x, d_gamma, d_beta);
}
void softmax_row(int64_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(softmax_row_for)(n, x, y); }
void softmax_row_backward(int64_t n, const float* y, const float* d_y, float* d_x) {
  HWY_DYNAMIC_DISPATCH(softmax_row_backward_for)(n, y, d_y, d_x);
}
RowSums row_sums(int64_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(row_sums_for)(n, x); }
void row_exponentials(int64_t n, const float* x, float offset, float a, float b, float* y) {
  HWY_DYNAMIC_DISPATCH(row_exponentials_for)(n, x, offset, a, b, y);
}
void add_row(int64_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(add_row_for)(n, x, y); }

}  // namespace internal
}  // namespace trireme::ops
#endif
