// Vectors of which only the first lanes lie in memory: others are neither read nor written. Include guard per target.
#if defined(TRIREME_OPS_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_OPS_PARTIAL_INL_H_
#undef TRIREME_OPS_PARTIAL_INL_H_
#else
#define TRIREME_OPS_PARTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));

// Zeros behind the first `count`, 0 ≤ count ≤ L.
HWY_INLINE V32 load_first(const float* from, int64_t count) {
  const F32 d;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
#else  // where Highway's reads whole vectors
  HWY_ALIGN float numbers[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) numbers[i] = from[i];
  return hn::Load(d, numbers);
#endif
}
HWY_INLINE void store_first(V32 v, float* to, int64_t count) {
  const F32 d;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#else
  HWY_ALIGN float numbers[kLanes];
  hn::Store(v, d, numbers);
  for (int64_t i = 0; i < count; ++i) to[i] = numbers[i];
#endif
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
