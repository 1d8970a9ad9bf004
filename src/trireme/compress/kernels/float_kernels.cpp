// What all codecs do with floats, for every SIMD target: look for those that are no numbers, and add up errors.
#include <algorithm>
#include <limits>

#include "trireme/compress/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/float_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());

std::size_t first_not_finite_for(const float* x, std::size_t n) {
  constexpr std::uint32_t kInfinite = 0x7f800000;
  const U32 d;
  const auto bits = [&](std::size_t i)
                        HWY_ATTR { return hn::And(hn::BitCast(d, hn::LoadU(F32(), x + i)), hn::Set(d, 0x7fffffff)); };
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const auto low = hn::Max(bits(i), bits(i + kLanes)), high = hn::Max(bits(i + 2 * kLanes), bits(i + 3 * kLanes));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Max(low, high), hn::Set(d, kInfinite))))) break;
  }
  for (; i < n; ++i) {
    if (!(x[i] - x[i] == 0)) return i;
  }
  return n;
}

void accumulate_for(const float* x, float* e, std::size_t n) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const F32 d;
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto sum = hn::Add(hn::LoadU(d, e + i), hn::LoadU(d, x + i));
    hn::StoreU(hn::Min(hn::Max(sum, hn::Set(d, -kMost)), hn::Set(d, kMost)), d, e + i);
  }
  for (; i < n; ++i) e[i] = std::clamp(e[i] + x[i], -kMost, kMost);
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(first_not_finite_for);
HWY_EXPORT(accumulate_for);

std::size_t first_not_finite(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(first_not_finite_for)(x, n); }
void accumulate(const float* x, float* e, std::size_t n) { HWY_DYNAMIC_DISPATCH(accumulate_for)(x, e, n); }

}  // namespace trireme::compress::kernels
#endif
