// Vectors of random numbers by place. Include guard per target.
#if defined(TRIREME_OPS_RANDOM_PLACE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_OPS_RANDOM_PLACE_INL_H_
#undef TRIREME_OPS_RANDOM_PLACE_INL_H_
#else
#define TRIREME_OPS_RANDOM_PLACE_INL_H_
#endif

#include "trireme/ops/math-inl.h"
#include "trireme/ops/random_place.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {

// Which elements of a row are kept, and by how much the kept ones grow. The row's key has 64 bits; a place's number is
// a 32-bit mix (C. Wellons, lowbias32) of the place and one half, with the other half between its rounds.
class RowDropout {
 public:
  HWY_INLINE RowDropout(float share, uint64_t seed, uint64_t row)
      : threshold_(drop_threshold(share)), factor_(1 / (1 - share)) {
    const uint64_t key = mixed_at(seed, row);
    low_ = static_cast<uint32_t>(key), high_ = static_cast<uint32_t>(key >> 32);
  }
  // Of the elements from `place` on: 0 where dropped, else the factor.
  HWY_INLINE V32 operator()(int64_t place) const {
    const U32 d;
    auto x = hn::Add(hn::Iota(d, static_cast<uint32_t>(place)), hn::Set(d, low_));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    x = hn::Mul(x, hn::Set(d, 0x7feb352du));
    x = hn::Add(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, high_));
    x = hn::Mul(x, hn::Set(d, 0x846ca68bu));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    const auto dropped = hn::Lt(x, hn::Set(d, threshold_));
    return hn::BitCast(F32(), hn::IfThenZeroElse(dropped, hn::BitCast(d, constant(factor_))));
  }

 private:
  uint32_t threshold_, low_ = 0, high_ = 0;
  float factor_;
};

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
