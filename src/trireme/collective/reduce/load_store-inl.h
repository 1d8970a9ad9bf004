// How vectors come from memory and go there: as elements, or widened in scratch. Included once per SIMD target.
#if defined(TRIREME_COLLECTIVE_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_COLLECTIVE_MEMORY_INL_H_
#undef TRIREME_COLLECTIVE_MEMORY_INL_H_
#else
#define TRIREME_COLLECTIVE_MEMORY_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trireme/collective/reduce/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {

// Some bytes, then zeros up to `padded`; out of line because tails would otherwise be most of the code.
HWY_NOINLINE inline void copy_part(void* to, const void* from, std::size_t bytes, std::size_t padded) {
  std::memcpy(to, from, bytes);
  if (padded > bytes) std::memset(static_cast<std::byte*>(to) + bytes, 0, padded - bytes);
}

// Memory as elements are stored: a vector at a time, the last one perhaps in part.
template <class E>
struct Raw {
  using D = typename E::Stored;
  using T = typename E::Value;
  using Wide = typename E::Wide;
  using Packed = hn::Vec<D>;
  static constexpr std::size_t kBytes = sizeof(T) * hn::MaxLanes(D());
  static constexpr bool kStreams = kBytes >= 16;  // Highway streams 16 bytes even of a shorter vector

  static HWY_INLINE Packed pack(Wide w) { return E::narrow(w); }

  static HWY_INLINE Wide load(const std::byte* from) {
    return E::widen(hn::LoadU(D(), reinterpret_cast<const T*>(from)));
  }
  static HWY_INLINE bool can_stream(const std::byte* to) {
    return kStreams && reinterpret_cast<std::uintptr_t>(to) % kBytes == 0;
  }
  static HWY_INLINE void stream(Packed p, std::byte* to) { hn::Stream(p, D(), reinterpret_cast<T*>(to)); }
  static HWY_INLINE void store(Packed p, std::byte* to) { hn::StoreU(p, D(), reinterpret_cast<T*>(to)); }

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  static HWY_INLINE Wide load_part(const std::byte* from, std::size_t lanes) {
    return E::widen(hn::MaskedLoad(hn::FirstN(D(), lanes), D(), reinterpret_cast<const T*>(from)));
  }
  static HWY_INLINE void store_part(Packed p, std::byte* to, std::size_t lanes) {
    hn::BlendedStore(p, hn::FirstN(D(), lanes), D(), reinterpret_cast<T*>(to));
  }
#else
  static HWY_INLINE Wide load_part(const std::byte* from, std::size_t lanes) {
    if (HWY_LIKELY(lanes == hn::MaxLanes(D()))) return load(from);
    HWY_ALIGN T part[hn::MaxLanes(D())];
    copy_part(part, from, lanes * sizeof(T), kBytes);
    return E::widen(hn::Load(D(), part));
  }
  static HWY_INLINE void store_part(Packed p, std::byte* to, std::size_t lanes) {
    if (HWY_LIKELY(lanes == hn::MaxLanes(D()))) return store(p, to);
    HWY_ALIGN T part[hn::MaxLanes(D())];
    hn::Store(p, D(), part);
    copy_part(to, part, lanes * sizeof(T), 0);
  }
#endif
};

// Scratch that keeps widened vectors, whole even where the elements end earlier.
template <class E>
struct Kept {
  using Wide = typename E::Wide;
  using Packed = Wide;
  static constexpr std::size_t kBytes = sizeof(Wide);
  static HWY_INLINE Packed pack(Wide w) { return w; }
  static HWY_INLINE Wide load(const std::byte* from) {
    Wide w;
    std::memcpy(&w, from, kBytes);
    return w;
  }
  static HWY_INLINE bool can_stream(const std::byte*) { return false; }
  static HWY_INLINE void stream(Packed, std::byte*) {}
  static HWY_INLINE void store(Packed p, std::byte* to) { std::memcpy(to, &p, kBytes); }
  static HWY_INLINE Wide load_part(const std::byte* from, std::size_t) { return load(from); }
  static HWY_INLINE void store_part(Packed p, std::byte* to, std::size_t) { store(p, to); }
};

// Four vectors of results: a cache line at least, so that streaming fills whole lines. By name: the compiler would keep
// an array in memory.
template <class To>
struct Four {
  typename To::Packed a, b, c, d;

  HWY_INLINE void store(std::byte* to, bool streaming) const {
    if (streaming) {
      To::stream(a, to);
      To::stream(b, to + To::kBytes);
      To::stream(c, to + 2 * To::kBytes);
      To::stream(d, to + 3 * To::kBytes);
    } else {
      To::store(a, to);
      To::store(b, to + To::kBytes);
      To::store(c, to + 2 * To::kBytes);
      To::store(d, to + 3 * To::kBytes);
    }
  }
};

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
