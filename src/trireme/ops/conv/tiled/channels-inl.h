// Vectors over the channels of a pixel, for the transforms of every SIMD target.
#if defined(TRIREME_OPS_CONV_CHANNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_OPS_CONV_CHANNELS_INL_H
#undef TRIREME_OPS_CONV_CHANNELS_INL_H
#else
#define TRIREME_OPS_CONV_CHANNELS_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

#include "trireme/ops/conv/kernels/product_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::conv_kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Channels = hn::CappedTag<float, kStrip>;
using Vector = hn::Vec<Channels>;
constexpr int64_t kWide = static_cast<int64_t>(hn::MaxLanes(Channels()));

// The next kWide channels at `from`, of which `count` are there.
HWY_INLINE Vector load_some(const float* from, int64_t count) {
  if (count >= kWide) return hn::LoadU(Channels(), from);
  HWY_ALIGN float part[kWide] = {};
  if (count > 0) std::memcpy(part, from, static_cast<std::size_t>(count) * sizeof(float));
  return hn::Load(Channels(), part);
}

HWY_INLINE void store_some(Vector x, float* to, int64_t count) {
  if (count >= kWide) return hn::StoreU(x, Channels(), to);
  HWY_ALIGN float part[kWide];
  hn::Store(x, Channels(), part);
  if (count > 0) std::memcpy(to, part, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace trireme::ops::conv_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
