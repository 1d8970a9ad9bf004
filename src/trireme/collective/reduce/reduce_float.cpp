// reduce and fold of f32 and f64, for every SIMD target.
#include "trireme/collective/reduce/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/collective/reduce/reduce_float.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/collective/reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {

Functions float_for(DType type, Op op) {
  return type == DType::f32 ? arithmetic<Plain<float>>(op) : arithmetic<Plain<double>>(op);
}
Divide float_divide_for(DType type) {
  return type == DType::f32 ? divide_floats<Plain<float>> : divide_floats<Plain<double>>;
}

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::kernels {

HWY_EXPORT(float_for);
HWY_EXPORT(float_divide_for);

Functions float_functions(DType type, Op op) { return HWY_DYNAMIC_DISPATCH(float_for)(type, op); }
Divide float_divide(DType type) { return HWY_DYNAMIC_DISPATCH(float_divide_for)(type); }

}  // namespace trireme::kernels
#endif
