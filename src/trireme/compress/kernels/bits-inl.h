// Bits of 64 lanes at a time, in the order of elements, whatever the width of vectors. Included once per SIMD target.
#if defined(TRIREME_COMPRESS_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_COMPRESS_BITS_INL_H_
#undef TRIREME_COMPRESS_BITS_INL_H_
#else
#define TRIREME_COMPRESS_BITS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// mask(i) is that of the lanes from i on; lane i's becomes bit i.
template <class D, class Mask>
HWY_INLINE std::uint64_t gather_bits(D d, const Mask& mask) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < 64; i += hn::MaxLanes(d)) {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, mask(i), bytes);
    std::uint64_t some;
    std::memcpy(&some, bytes, sizeof some);
    all |= some << i;
  }
  return all;
}

// The mask of the lanes from i on.
template <class D>
HWY_INLINE hn::Mask<D> mask_of(D d, std::uint64_t bits, std::size_t i) {
  bits >>= i;
  std::uint8_t bytes[8];
  std::memcpy(bytes, &bits, sizeof bytes);
  return hn::LoadMaskBits(d, bytes);
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
