// f32 to f16 and bf16 and back, for every SIMD target.
#include <cstring>

#include "trireme/compress/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/half_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

#include "trireme/base/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;
using I32 = hn::ScalableTag<std::int32_t>;
using U16 = hn::Rebind<std::uint16_t, F32>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());

struct F16 {
  static HWY_INLINE hn::Vec<U16> narrow(hn::Vec<F32> v) { return trireme::kernels::HWY_NAMESPACE::to_f16(v); }
  static HWY_INLINE hn::Vec<F32> widen(hn::Vec<U16> v) { return trireme::kernels::HWY_NAMESPACE::from_f16(v); }
};
struct BF16 {
  static HWY_INLINE hn::Vec<U16> narrow(hn::Vec<F32> v) {
    const auto rounded = trireme::kernels::HWY_NAMESPACE::round_bf16(v);
    return hn::DemoteTo(U16(), hn::BitCast(I32(), hn::ShiftRight<16>(rounded)));
  }
  static HWY_INLINE hn::Vec<F32> widen(hn::Vec<U16> v) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), v)));
  }
};

HWY_INLINE std::uint16_t* at(std::byte* halves, std::size_t i) {
  return reinterpret_cast<std::uint16_t*>(halves + i * sizeof(std::uint16_t));
}
HWY_INLINE const std::uint16_t* at(const std::byte* halves, std::size_t i) {
  return reinterpret_cast<const std::uint16_t*>(halves + i * sizeof(std::uint16_t));
}

// A vector at a time; the last one, where it is not whole, by way of a copy.
template <class H, bool kOut, bool kLeft>
bool halve_all(const float* x, std::size_t n, float limit, std::byte* out, float* left) {
  const F32 d;
  const U32 u;
  const auto least = hn::Set(d, -limit), most = hn::Set(d, limit);
  auto worst = hn::Zero(u);
  const auto one = [&](const float* from, std::uint16_t* to, float* rest) HWY_ATTR {
    const auto v = hn::LoadU(d, from);
    worst = hn::Max(worst, hn::And(hn::BitCast(u, v), hn::Set(u, 0x7fffffff)));
    const auto half = H::narrow(hn::Min(hn::Max(v, least), most));
    if constexpr (kOut) hn::StoreU(half, U16(), to);
    if constexpr (kLeft) hn::StoreU(hn::Sub(v, H::widen(half)), d, rest);
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) one(x + i, kOut ? at(out, i) : nullptr, kLeft ? left + i : nullptr);
  if (i < n) {
    const std::size_t rest = n - i;
    float part[kLanes] = {};
    std::uint16_t halves[kLanes];
    std::memcpy(part, x + i, rest * sizeof(float));
    one(part, halves, part);
    if constexpr (kOut) std::memcpy(at(out, i), halves, rest * sizeof(std::uint16_t));
    if constexpr (kLeft) std::memcpy(left + i, part, rest * sizeof(float));
  }
  return hn::AllTrue(u, hn::Lt(worst, hn::Set(u, 0x7f800000)));
}

template <class H>
bool halve_as(const float* x, std::size_t n, float limit, std::byte* out, float* left) {
  if (out && left) return halve_all<H, true, true>(x, n, limit, out, left);
  if (out) return halve_all<H, true, false>(x, n, limit, out, nullptr);
  return halve_all<H, false, true>(x, n, limit, nullptr, left);
}

template <class H, bool kAdd>
void widen_all(const std::byte* halves, std::size_t n, float factor, float* out) {
  const F32 d;
  const auto by = hn::Set(d, factor);
  const auto one = [&](const std::uint16_t* from, float* to) HWY_ATTR {
    const auto v = H::widen(hn::LoadU(U16(), from));
    if constexpr (kAdd) {
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Mul(by, v)), d, to);
    } else {
      hn::StoreU(v, d, to);
    }
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) one(at(halves, i), out + i);
  if (i < n) {
    const std::size_t rest = n - i;
    std::uint16_t part[kLanes] = {};
    float wide[kLanes] = {};
    std::memcpy(part, at(halves, i), rest * sizeof(std::uint16_t));
    std::memcpy(wide, out + i, rest * sizeof(float));
    one(part, wide);
    std::memcpy(out + i, wide, rest * sizeof(float));
  }
}

bool halve_for(DType type, const float* x, std::size_t n, float limit, std::byte* out, float* left) {
  return type == DType::f16 ? halve_as<F16>(x, n, limit, out, left) : halve_as<BF16>(x, n, limit, out, left);
}
void widen_for(DType type, const std::byte* halves, std::size_t n, float* out) {
  type == DType::f16 ? widen_all<F16, false>(halves, n, 1, out) : widen_all<BF16, false>(halves, n, 1, out);
}
void widen_add_for(DType type, const std::byte* halves, std::size_t n, float factor, float* out) {
  type == DType::f16 ? widen_all<F16, true>(halves, n, factor, out) : widen_all<BF16, true>(halves, n, factor, out);
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(halve_for);
HWY_EXPORT(widen_for);
HWY_EXPORT(widen_add_for);

bool halve(DType type, const float* x, std::size_t n, float limit, std::byte* out, float* left) {
  return HWY_DYNAMIC_DISPATCH(halve_for)(type, x, n, limit, out, left);
}
void widen(DType type, const std::byte* halves, std::size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_for)(type, halves, n, out);
}
void widen_add(DType type, const std::byte* halves, std::size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_add_for)(type, halves, n, factor, out);
}

}  // namespace trireme::compress::kernels
#endif
