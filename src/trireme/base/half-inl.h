// 16-bit floats to f32 and back, rounded to nearest even, the same bits for every SIMD target. Included once per
// target, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE of its own.
#if defined(TRIREME_BASE_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_BASE_HALF_INL_H_
#undef TRIREME_BASE_HALF_INL_H_
#else
#define TRIREME_BASE_HALF_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;
using I32 = hn::ScalableTag<std::int32_t>;

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
using F16 = hn::Rebind<hwy::float16_t, F32>;
HWY_INLINE hn::Vec<F32> from_f16(hn::Vec<hn::Rebind<std::uint16_t, F32>> v) {
  return hn::PromoteTo(F32(), hn::BitCast(F16(), v));
}
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, F32>> to_f16(hn::Vec<F32> v) {
  return hn::BitCast(hn::Rebind<std::uint16_t, F32>(), hn::DemoteTo(F16(), v));
}
#else
// Bit by bit where the machine has no conversion (Highway's own drops infinities and rounds toward zero). Subnormals
// pass through one float addition that aligns, and so rounds, their mantissa.
HWY_INLINE hn::Vec<F32> from_f16(hn::Vec<hn::Rebind<std::uint16_t, F32>> v) {
  const I32 d;
  const auto bits = hn::PromoteTo(d, v);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d, 0x7fff)));
  const auto exponent = hn::And(shifted, hn::Set(d, 0x7c00 << 13));
  const auto normal = hn::Add(shifted, hn::Set(d, (127 - 15) << 23));
  const auto special = hn::Add(normal, hn::Set(d, (128 - 16) << 23));
  const auto magic = hn::BitCast(F32(), hn::Set(d, 113 << 23));
  const auto one_up = hn::BitCast(F32(), hn::Add(normal, hn::Set(d, 1 << 23)));
  const auto tiny = hn::BitCast(d, hn::Sub(one_up, magic));
  auto out = hn::IfThenElse(hn::Eq(exponent, hn::Set(d, 0x7c00 << 13)), special, normal);
  out = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d)), tiny, out);
  return hn::BitCast(F32(), hn::Or(out, sign));
}
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, F32>> to_f16(hn::Vec<F32> v) {
  const I32 d;
  const auto bits = hn::BitCast(d, v);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
  const auto size = hn::And(bits, hn::Set(d, 0x7fffffff));
  const auto nan_or_inf = hn::IfThenElse(hn::Gt(size, hn::Set(d, 255 << 23)), hn::Set(d, 0x7e00), hn::Set(d, 0x7c00));
  const auto magic = hn::Set(d, (127 - 15 + 23 - 10 + 1) << 23);
  const auto aligned = hn::Add(hn::BitCast(F32(), size), hn::BitCast(F32(), magic));
  const auto tiny = hn::Sub(hn::BitCast(d, aligned), magic);
  const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(d, 1));
  const auto rebiased = hn::Sub(size, hn::Set(d, ((127 - 15) << 23) - 0xfff));
  auto out = hn::ShiftRight<13>(hn::Add(rebiased, odd));
  out = hn::IfThenElse(hn::Lt(size, hn::Set(d, 113 << 23)), tiny, out);
  out = hn::IfThenElse(hn::Gt(size, hn::Set(d, ((127 + 16) << 23) - 1)), nan_or_inf, out);
  return hn::DemoteTo(hn::Rebind<std::uint16_t, F32>(), hn::Or(out, sign));
}
#endif

// The upper half of each lane is the value rounded to bf16; the lower half is junk. NaN is cut, not rounded: it stays
// NaN because what comes here is arithmetic's, which is quiet, or was widened from 16 bits.
HWY_INLINE hn::Vec<U32> round_bf16(hn::Vec<F32> v) {
  const U32 d;
  const auto bits = hn::BitCast(d, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto number = hn::RebindMask(d, hn::Eq(v, v));
  return hn::Add(bits, hn::IfThenElseZero(number, hn::Add(odd, hn::Set(d, 0x7fff))));
}

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
