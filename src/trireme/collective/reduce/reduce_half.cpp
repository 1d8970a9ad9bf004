// reduce and fold of f16 and bf16, for every SIMD target: in f32, rounded once.
#include "trireme/collective/reduce/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/collective/reduce/reduce_half.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/collective/reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {

Functions half_for(DType type, Op op) { return type == DType::f16 ? arithmetic<Half>(op) : arithmetic<Brain>(op); }
Divide half_divide_for(DType type) { return type == DType::f16 ? divide_floats<Half> : divide_floats<Brain>; }

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::kernels {

HWY_EXPORT(half_for);
HWY_EXPORT(half_divide_for);

Functions half_functions(DType type, Op op) { return HWY_DYNAMIC_DISPATCH(half_for)(type, op); }
Divide half_divide(DType type) { return HWY_DYNAMIC_DISPATCH(half_divide_for)(type); }

}  // namespace trireme::kernels
#endif
