#include "trireme/ops/elementwise/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/elementwise/unary_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {

template <class F>
void map(const float* x, int64_t n, float* y, F&& f) {
  each_vector(n, [&](int64_t i, int64_t lanes) HWY_ATTR { store_lanes(f(load_lanes(x + i, lanes)), y + i, lanes); });
}

void apply_for(Unary function, const float* x, int64_t n, float* y) {
  switch (function) {
    case Unary::exp:
      return map(x, n, y, [](V32 v) HWY_ATTR { return exp(v); });
    case Unary::sigmoid:
      return map(x, n, y, [](V32 v) HWY_ATTR { return sigmoid(v); });
    case Unary::tanh:
      return map(x, n, y, [](V32 v) HWY_ATTR { return tanh(v); });
    case Unary::erf:
      return map(x, n, y, [](V32 v) HWY_ATTR { return erf(v); });
  }
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(apply_for);

void apply(Unary function, const float* x, int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(apply_for)(function, x, n, y); }

}  // namespace trireme::ops
#endif
