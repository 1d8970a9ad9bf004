// The loops of sparse codecs, for every SIMD target.
#include "trireme/compress/sparse_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/sparse_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without branches: at one in a hundred, whether a vector has an element to send cannot be foretold. Compressed in a
// register and stored whole, as compressing stores are slow on some processors.
Collected collect_for(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places) {
  // Magnitudes are below 2^31: signed comparisons, which all targets have, do.
  const hn::ScalableTag<float> f;
  const hn::RebindToSigned<decltype(f)> d;
  const hn::RebindToUnsigned<decltype(f)> u;
  constexpr std::size_t kLanes = hn::MaxLanes(f);
  static_assert(kLanes <= kSlack);
  const auto below = hn::Set(d, static_cast<std::int32_t>(lower - 1)), sign_off = hn::Set(d, 0x7fffffff);
  auto largest = hn::Zero(d);
  auto place = hn::Iota(d, 0);
  std::size_t i = 0, count = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto value = hn::LoadU(f, x + i);
    const auto magnitude = hn::And(hn::BitCast(d, value), sign_off);
    largest = hn::Max(largest, magnitude);
    const auto wanted = hn::Gt(magnitude, below);
    hn::StoreU(hn::Compress(value, hn::RebindMask(f, wanted)), f, values + count);
    hn::StoreU(hn::BitCast(u, hn::Compress(place, wanted)), u, places + count);
    count += hn::CountTrue(d, wanted);
    place = hn::Add(place, hn::Set(d, static_cast<std::int32_t>(kLanes)));
  }
  auto most = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, largest)));
  for (; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffff;
    most = std::max(most, magnitude);
    values[count] = x[i];
    places[count] = static_cast<std::uint32_t>(i);
    count += magnitude >= lower;
  }
  return {count, most};
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(collect_for);

Collected collect(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places) {
  return HWY_DYNAMIC_DISPATCH(collect_for)(x, n, lower, values, places);
}

}  // namespace trireme::compress::kernels
#endif
