// Functions of f32 vectors, for every SIMD target; errors in units of the last place, measured over all floats by
// tests/ops/math_test.cpp. What is not a number stays so. Include guard per target.
#if defined(TRIREME_OPS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_OPS_MATH_INL_H_
#undef TRIREME_OPS_MATH_INL_H_
#else
#define TRIREME_OPS_MATH_INL_H_
#endif

#include "trireme/ops/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {
using I32 = hn::ScalableTag<int32_t>;
using U32 = hn::ScalableTag<uint32_t>;

HWY_INLINE V32 constant(float x) { return hn::Set(F32(), x); }

// 2ⁿ, −126 ≤ n ≤ 127, a whole number.
HWY_INLINE V32 power_of_two(hn::Vec<I32> n) {
  return hn::BitCast(F32(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I32(), 127))));
}

// The larger and the smaller of two, x where it is not a number.
HWY_INLINE V32 at_least(float least, V32 x) {
  const auto y = hn::Max(constant(least), x);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
  return y;  // the second where one is none
#else
  return hn::IfThenElse(hn::IsNaN(x), x, y);
#endif
}
HWY_INLINE V32 at_most(float most, V32 x) {
  const auto y = hn::Min(constant(most), x);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
  return y;
#else
  return hn::IfThenElse(hn::IsNaN(x), x, y);
#endif
}

// x·2ⁿ, −150 ≤ n ≤ 128, a whole number.
HWY_INLINE V32 scaled(V32 x, V32 n) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return V32{_mm512_scalef_ps(x.raw, n.raw)};
#else
  const auto whole = hn::ConvertTo(I32(), n), half = hn::ShiftRight<1>(whole);  // one step would leave the exponents
  return hn::Mul(hn::Mul(x, power_of_two(half)), power_of_two(hn::Sub(whole, half)));
#endif
}

// eˣ: x = n·ln 2 + r, a polynomial of r in [−ln 2 / 2, ln 2 / 2], times 2ⁿ. Beyond −104 and 89 it is 0 and infinite.
HWY_INLINE V32 exp(V32 x) {
  x = at_most(89.0f, at_least(-104.0f, x));
  const auto n = hn::Round(hn::Mul(x, constant(1.442695041f)));
  auto r = hn::NegMulAdd(n, constant(0.693145752f), x);
  r = hn::NegMulAdd(n, constant(1.42860677e-6f), r);
  auto p = constant(1.37805939e-3f);
  p = hn::MulAdd(p, r, constant(8.37312452e-3f));
  p = hn::MulAdd(p, r, constant(4.16695364e-2f));
  p = hn::MulAdd(p, r, constant(1.66664720e-1f));
  p = hn::MulAdd(p, r, constant(4.99999851e-1f));
  p = hn::MulAdd(p, r, constant(1.0f));
  p = hn::MulAdd(p, r, constant(1.0f));
  return scaled(p, n);
}

// Below −88.7, where the exact result is no normal number any more, 0.
HWY_INLINE V32 sigmoid(V32 x) {
  const auto one = constant(1.0f);
  return hn::Div(one, hn::Add(one, exp(hn::Neg(x))));
}

// Near zero x + x³·p(x²) (Cephes), else 1 − 2 / (e²ˣ + 1).
HWY_INLINE V32 tanh(V32 x) {
  const auto size = hn::Abs(x), square = hn::Mul(x, x);
  auto p = constant(-5.70498872745e-3f);
  p = hn::MulAdd(p, square, constant(2.06390887954e-2f));
  p = hn::MulAdd(p, square, constant(-5.37397155531e-2f));
  p = hn::MulAdd(p, square, constant(1.33314422036e-1f));
  p = hn::MulAdd(p, square, constant(-3.33332819422e-1f));
  const auto small = hn::MulAdd(hn::Mul(p, square), x, x);
  const auto one = constant(1.0f);
  const auto large = hn::Sub(one, hn::Div(constant(2.0f), hn::Add(exp(hn::Add(size, size)), one)));
  return hn::IfThenElse(hn::Lt(size, constant(0.625f)), small, hn::CopySign(large, x));
}

// Near zero x + x·p(x²), else 1 − e to a polynomial of |x| (N. Juffa).
HWY_INLINE V32 erf(V32 x) {
  const auto size = hn::Abs(x), square = hn::Mul(x, x);
  auto r = hn::MulAdd(constant(-1.72853470e-5f), size, constant(3.83197126e-4f));
  const auto u = hn::MulAdd(constant(-3.88396438e-3f), size, constant(2.42546219e-2f));
  r = hn::MulAdd(r, square, u);
  r = hn::MulAdd(r, size, constant(-1.06777877e-1f));
  r = hn::MulAdd(r, size, constant(-6.34846687e-1f));
  r = hn::MulAdd(r, size, constant(-1.28717512e-1f));
  r = hn::NegMulAdd(constant(1.0f), size, hn::Mul(r, size));
  const auto large = hn::CopySign(hn::Sub(constant(1.0f), exp(r)), x);
  auto p = constant(-5.96761703e-4f);
  p = hn::MulAdd(p, square, constant(4.99119423e-3f));
  p = hn::MulAdd(p, square, constant(-2.67681349e-2f));
  p = hn::MulAdd(p, square, constant(1.12819925e-1f));
  p = hn::MulAdd(p, square, constant(-3.76125336e-1f));
  p = hn::MulAdd(p, square, constant(1.28379166e-1f));
  const auto small = hn::MulAdd(p, x, x);
  // Beyond 4 the polynomial of |x| may overflow; erf is 1 to the last place.
  const auto far = hn::IfThenElse(hn::Gt(size, constant(4.0f)), hn::CopySign(constant(1.0f), x), large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(size, constant(0.927734375f)), far, small));
}

// Calls body(begin, lanes) for each vector of `count` elements, the last one cut short; kLanes in full ones.
template <class Body>
HWY_INLINE void each_vector(int64_t count, Body&& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, static_cast<int64_t>(kLanes));
  if (i < count) body(i, count - i);
}
HWY_INLINE V32 load_lanes(const float* from, int64_t lanes) {
  return lanes == kLanes ? hn::LoadU(F32(), from) : load_first(from, lanes);
}
HWY_INLINE void store_lanes(V32 v, float* to, int64_t lanes) {
  if (lanes == kLanes) {
    hn::StoreU(v, F32(), to);
  } else {
    store_first(v, to, lanes);
  }
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
