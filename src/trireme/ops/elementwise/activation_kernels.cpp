#include <algorithm>

#include "trireme/ops/column_sums.h"
#include "trireme/ops/elementwise/activation.h"
#include "trireme/ops/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/elementwise/activation_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/random_place-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {

struct None {
  static HWY_INLINE V32 value(V32 x) { return x; }
  static HWY_INLINE V32 slope(V32, V32 d) { return d; }
};
struct Relu {
  static HWY_INLINE V32 value(V32 x) { return at_least(0, x); }
  static HWY_INLINE V32 slope(V32 x, V32 d) { return hn::IfThenElseZero(hn::Gt(x, hn::Zero(F32())), d); }
};
// Beyond these the slopes are 0 and 1 to the last place, and no square overflows.
HWY_INLINE V32 bounded(V32 x) { return at_most(15, at_least(-15, x)); }

struct Gelu {
  static HWY_INLINE V32 share(V32 x) {
    const auto half = constant(0.5f);
    return hn::MulAdd(half, erf(hn::Mul(x, constant(0.707106781f))), half);
  }
  static HWY_INLINE V32 value(V32 x) { return hn::Mul(x, share(x)); }
  static HWY_INLINE V32 slope(V32 x, V32 d) {
    x = bounded(x);
    const auto density = hn::Mul(constant(0.398942280f), exp(hn::Mul(constant(-0.5f), hn::Mul(x, x))));
    return hn::Mul(d, hn::MulAdd(x, density, share(x)));
  }
};
struct GeluTanh {
  static constexpr float kFactor = 0.797884561f, kCube = 0.044715f;
  static HWY_INLINE V32 inner(V32 x) {
    const auto square = hn::Mul(x, x);
    return hn::Mul(constant(kFactor), hn::MulAdd(hn::Mul(constant(kCube), square), x, x));
  }
  static HWY_INLINE V32 value(V32 x) {
    const auto half = hn::Mul(constant(0.5f), x);
    return hn::MulAdd(half, tanh(inner(x)), half);
  }
  static HWY_INLINE V32 slope(V32 x, V32 d) {
    x = bounded(x);
    const auto half = constant(0.5f), t = tanh(inner(x));
    const auto inner_slope = hn::Mul(constant(kFactor), hn::MulAdd(constant(3 * kCube), hn::Mul(x, x), constant(1.0f)));
    const auto through = hn::Mul(hn::NegMulAdd(t, t, constant(1.0f)), inner_slope);
    return hn::Mul(d, hn::MulAdd(hn::Mul(half, x), through, hn::MulAdd(half, t, half)));
  }
};

template <class Body>
HWY_INLINE void with_activation(Activation activation, Body&& body) {
  switch (activation) {
    case Activation::none:
      return body(None());
    case Activation::relu:
      return body(Relu());
    case Activation::gelu:
      return body(Gelu());
    case Activation::gelu_tanh:
      return body(GeluTanh());
  }
}

void activate_for(Activation activation, int64_t n, const float* x, float* y) {
  with_activation(activation, [&](auto f) HWY_ATTR {
    each_vector(n, [&](int64_t i, int64_t lanes)
                       HWY_ATTR { store_lanes(decltype(f)::value(load_lanes(x + i, lanes)), y + i, lanes); });
  });
}

void slope_for(Activation activation, int64_t n, const float* x, const float* d_y, float* d_x) {
  with_activation(activation, [&](auto f) HWY_ATTR {
    each_vector(n, [&](int64_t i, int64_t lanes) HWY_ATTR {
      store_lanes(decltype(f)::slope(load_lanes(x + i, lanes), load_lanes(d_y + i, lanes)), d_x + i, lanes);
    });
  });
}

void bias_activate_for(Activation activation, int64_t n, const float* x, const float* bias, float* sum, float* y) {
  with_activation(activation, [&](auto f) HWY_ATTR {
    each_vector(n, [&](int64_t i, int64_t lanes) HWY_ATTR {
      const auto v = hn::Add(load_lanes(x + i, lanes), load_lanes(bias + i, lanes));
      if (sum != nullptr) store_lanes(v, sum + i, lanes);
      store_lanes(decltype(f)::value(v), y + i, lanes);
    });
  });
}

void dropout_for(int64_t n, float share, uint64_t seed, uint64_t row, const float* x, const float* residual, float* y) {
  const RowDropout drop(share, seed, row);
  each_vector(n, [&](int64_t i, int64_t lanes) HWY_ATTR {
    const auto v = hn::Mul(load_lanes(x + i, lanes), drop(i));
    store_lanes(residual == nullptr ? v : hn::Add(v, load_lanes(residual + i, lanes)), y + i, lanes);
  });
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(activate_for);
HWY_EXPORT(slope_for);
HWY_EXPORT(bias_activate_for);
HWY_EXPORT(dropout_for);

namespace {

constexpr int64_t kStretch = 1 << 14;  // of one part; also what dropout counts its places in

template <class Body>
void each_stretch(int64_t n, Body&& body) {
  parallel((n + kStretch - 1) / kStretch,
           [&](int64_t part) { body(part * kStretch, std::min(kStretch, n - part * kStretch)); });
}

}  // namespace

void activation_forward(Activation activation, int64_t n, const float* x, float* y) {
  each_stretch(n, [&](int64_t i, int64_t count) {
    HWY_DYNAMIC_DISPATCH(activate_for)(activation, count, x + i, y + i);
  });
}

void activation_backward(Activation activation, int64_t n, const float* x, const float* d_y, float* d_x) {
  each_stretch(n, [&](int64_t i, int64_t count) {
    HWY_DYNAMIC_DISPATCH(slope_for)(activation, count, x + i, d_y + i, d_x + i);
  });
}

void bias_activation_forward(Activation activation, int64_t rows, int64_t columns, const float* x, const float* bias,
                             float* sum, float* y) {
  const int64_t together = std::max<int64_t>(1, kStretch / std::max<int64_t>(columns, 1));
  parallel((rows + together - 1) / together, [&](int64_t part) {
    for (int64_t row = part * together; row < std::min(rows, (part + 1) * together); ++row) {
      const int64_t i = row * columns;
      HWY_DYNAMIC_DISPATCH(bias_activate_for)
      (activation, columns, x + i, bias, sum == nullptr ? nullptr : sum + i, y + i);
    }
  });
}

void bias_activation_backward(Activation activation, int64_t rows, int64_t columns, const float* sum, const float* d_y,
                              float* d_x, float* d_bias) {
  activation_backward(activation, rows * columns, sum, d_y, d_x);
  column_sums(rows, columns, d_x, columns, d_bias);
}

void dropout(int64_t n, float share, uint64_t seed, const float* x, const float* residual, float* y) {
  each_stretch(n, [&](int64_t i, int64_t count) {
    HWY_DYNAMIC_DISPATCH(dropout_for)
    (count, share, seed, static_cast<uint64_t>(i / kStretch), x + i, residual == nullptr ? nullptr : residual + i,
     y + i);
  });
}

}  // namespace trireme::ops
#endif
