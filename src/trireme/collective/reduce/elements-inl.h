// What a lane is: how elements are stored, in what they are computed, and the operators on them. Included once per
// SIMD target, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE of its own.
//
// An element type E gives
//   Stored   tag of one vector as it lies in memory
//   Wide     what one such vector becomes in registers; sizeof(Wide) bytes when kept in a scratch block
//   widen, narrow   between the two; narrow rounds to nearest even
// Nothing here multiplies and then adds, so that no compiler can contract the two into one rounding.
#if defined(TRIREME_COLLECTIVE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_COLLECTIVE_LANES_INL_H_
#undef TRIREME_COLLECTIVE_LANES_INL_H_
#else
#define TRIREME_COLLECTIVE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "trireme/base/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {

// Elements computed in their own type.
template <class T>
struct Plain {
  using Value = T;
  using Stored = hn::ScalableTag<T>;
  using Wide = hn::Vec<Stored>;
  using Number = Stored;
  static constexpr bool kWidens = false;
  static HWY_INLINE Wide widen(Wide v) { return v; }
  static HWY_INLINE Wide narrow(Wide v) { return v; }
};

struct Half {
  using Value = std::uint16_t;
  using Stored = hn::Rebind<std::uint16_t, F32>;
  using Wide = hn::Vec<F32>;
  using Number = F32;
  static constexpr bool kWidens = true;
  static HWY_INLINE Wide widen(hn::Vec<Stored> v) { return from_f16(v); }
  static HWY_INLINE hn::Vec<Stored> narrow(Wide v) { return to_f16(v); }
};

#if HWY_TARGET == HWY_SCALAR
struct Brain {
  using Value = std::uint16_t;
  using Stored = hn::Rebind<std::uint16_t, F32>;
  using Wide = hn::Vec<F32>;
  using Number = F32;
  static constexpr bool kWidens = true;
  static HWY_INLINE Wide widen(hn::Vec<Stored> v) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), v)));
  }
  static HWY_INLINE hn::Vec<Stored> narrow(Wide v) {
    return hn::DemoteTo(Stored(), hn::BitCast(I32(), hn::ShiftRight<16>(round_bf16(v))));
  }
};
#else
// Elements at even and at odd places of one vector: a shift or a mask away from f32, no shuffle.
struct EvenOdd {
  hn::Vec<F32> even, odd;
};

struct Brain {
  using Value = std::uint16_t;
  using Stored = hn::ScalableTag<std::uint16_t>;
  using Wide = EvenOdd;
  using Number = F32;
  static constexpr bool kWidens = true;
  static HWY_INLINE Wide widen(hn::Vec<Stored> v) {
    const auto both = hn::BitCast(U32(), v);
    return {hn::BitCast(F32(), hn::ShiftLeft<16>(both)),
            hn::BitCast(F32(), hn::And(both, hn::Set(U32(), 0xffff0000u)))};
  }
  static HWY_INLINE hn::Vec<Stored> narrow(Wide v) {
    const auto upper = hn::And(round_bf16(v.odd), hn::Set(U32(), 0xffff0000u));
    return hn::BitCast(Stored(), hn::Or(upper, hn::ShiftRight<16>(round_bf16(v.even))));
  }
};
#endif

// Applies f to the vectors a Wide is made of.
template <class F, class V>
HWY_INLINE V each(F f, V a, V b) {
  return f(a, b);
}
template <class F, class V>
HWY_INLINE V each(F f, V a) {
  return f(a);
}
#if HWY_TARGET != HWY_SCALAR
template <class F>
HWY_INLINE EvenOdd each(F f, EvenOdd a, EvenOdd b) {
  return {f(a.even, b.even), f(a.odd, b.odd)};
}
template <class F>
HWY_INLINE EvenOdd each(F f, EvenOdd a) {
  return {f(a.even), f(a.odd)};
}
#endif

struct Sum {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Prod {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    const hn::DFromV<V> d;
    using T = hn::TFromD<decltype(d)>;
    if constexpr (HWY_TARGET == HWY_SCALAR || hwy::IsFloat<T>() || sizeof(T) == 4) {
      return hn::Mul(a, b);
    } else if constexpr (sizeof(T) == 1) {  // as 16-bit products of the even and of the odd bytes
      const hn::Repartition<std::uint16_t, decltype(d)> wide;
      const auto x = hn::BitCast(wide, a), y = hn::BitCast(wide, b);
      const auto even = hn::And(hn::Mul(x, y), hn::Set(wide, 0xff));
      const auto odd = hn::Mul(hn::ShiftRight<8>(x), hn::ShiftRight<8>(y));
      return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
    } else {  // low·low + (low·high + high·low)·2³²
      static_assert(sizeof(T) == 8);
      const hn::Repartition<std::uint32_t, decltype(d)> half;
      const hn::Repartition<std::uint64_t, decltype(d)> wide;
      const auto high = [&](V v) HWY_ATTR { return hn::BitCast(half, hn::ShiftRight<32>(hn::BitCast(wide, v))); };
      const auto x = hn::BitCast(half, a), y = hn::BitCast(half, b);
      const auto cross = hn::Add(hn::MulEven(x, high(b)), hn::MulEven(high(a), y));
      return hn::BitCast(d, hn::Add(hn::MulEven(x, y), hn::ShiftLeft<32>(cross)));
    }
  }
};

// a where a < b, else b: also b where either is NaN.
template <class V>
HWY_INLINE V lesser(V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(a, b);
#else
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
}

// Of floats: NaN if either is NaN, and −0 < +0. The two orders differ only where one has a NaN or zeros of two signs;
// or-ing their bits keeps the NaN and the sign.
struct Min {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::Or(lesser(a, b), lesser(b, a));
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::Neg(Min()(hn::Neg(a), hn::Neg(b)));
    } else {
      return hn::Max(a, b);
    }
  }
};

struct And {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::And(a, b);
  }
};
struct Or {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Or(a, b);
  }
};
struct Xor {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Xor(a, b);
  }
};

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
