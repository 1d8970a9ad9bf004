// The blocks of qsgd and terngrad, for every SIMD target.
#include "trireme/compress/kernels/kernels.h"
#include "trireme/compress/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/stochastic_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/compress/kernels/bits-inl.h"
#include "trireme/compress/kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {

using U8 = hn::ScalableTag<std::uint8_t>;
using Code = hn::Rebind<std::uint8_t, I32>;
constexpr std::size_t kBytes = hn::MaxLanes(U8());

// Noise even over ±½, which makes rounding to nearest right on average: the block's key and the element, twice mixed.
struct Dither {
  static constexpr std::uint32_t kGolden = 0x9e3779b9;
  hn::Vec<U32> first;  // of the elements of the first vector
  std::uint32_t high;
  explicit HWY_INLINE Dither(std::uint64_t key)
      : first(hn::Add(hn::Mul(hn::Iota(U32(), 0), hn::Set(U32(), kGolden)),
                      hn::Set(U32(), static_cast<std::uint32_t>(key)))),
        high(static_cast<std::uint32_t>(key >> 32)) {}

  HWY_INLINE hn::Vec<F32> operator()(hn::Vec<F32> v, std::size_t i) const {
    const U32 d;
    auto z = hn::Add(first, hn::Set(d, static_cast<std::uint32_t>(i) * kGolden));
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<16>(z)), hn::Set(d, 0x7feb352du));
    z = hn::Add(hn::Xor(z, hn::ShiftRight<15>(z)), hn::Set(d, high));
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<13>(z)), hn::Set(d, 0x846ca68bu));
    z = hn::Xor(z, hn::ShiftRight<16>(z));
    const auto noise = hn::Mul(hn::ConvertTo(F32(), hn::BitCast(I32(), z)), hn::Set(F32(), 0x1p-32f));
    return hn::Add(v, noise);
  }
};

// Codes are q + levels. False where some x is not finite.
template <std::size_t kCount>
HWY_INLINE bool draw_codes(const float* x, int levels, std::uint64_t key, std::byte* scale, std::uint8_t* codes,
                           float* left) {
  const std::uint32_t largest = largest_bits<kCount>(x);
  const Step step = step_of(largest, static_cast<float>(levels));
  put(scale, step.step);
  const auto bias = hn::Set(I32(), levels);
  quantize<kCount>(x, step, static_cast<float>(levels), Dither(key), left, [&](std::size_t i, auto q) HWY_ATTR {
    hn::StoreU(hn::DemoteTo(Code(), hn::Add(q, bias)), Code(), codes + i);
  });
  return largest < 0x7f800000;
}

template <std::size_t kCount, class To>
HWY_INLINE void read_codes(const std::uint8_t* codes, int levels, const std::byte* scale, float* out, const To& to) {
  const auto step = hn::Set(F32(), get(scale));
  const auto bias = hn::Set(I32(), levels);
  for (std::size_t i = 0; i < kCount; i += kLanes) {
    const auto q = hn::Sub(hn::PromoteTo(I32(), hn::LoadU(Code(), codes + i)), bias);
    to(hn::Mul(hn::ConvertTo(F32(), q), step), out + i);
  }
}

// ---- qsgd: plane p holds bit p of every code ----

struct Qsgd {
  int bits;
  static constexpr std::size_t kBlock = kQsgdBlock, kHead = sizeof(float), kPlane = kQsgdBlock / 8, kMostPlanes = 8;
  std::size_t planes() const { return static_cast<std::size_t>(bits); }
  int levels() const { return (1 << (bits - 1)) - 1; }
};

bool qsgd_encode_for(const float* x, std::size_t n, int bits, std::uint64_t key, std::byte* message, float* left) {
  const Qsgd form{bits};
  return encode_blocks(
      form, x, n, message, left, [&](const float* from, std::size_t, std::byte* to, float* rest) HWY_ATTR {
        HWY_ALIGN std::uint8_t codes[kQsgdBlock];
        key = mixed(key);
        if (!draw_codes<kQsgdBlock>(from, form.levels(), key, to, codes, rest)) return false;
        std::byte* plane = to + Qsgd::kHead;
        for (int p = 0; p < bits; ++p, plane += Qsgd::kPlane) {
          const auto bit = hn::Set(U8(), static_cast<std::uint8_t>(1 << p));
          for (std::size_t i = 0; i < kQsgdBlock; i += 64) {
            const std::uint64_t all = gather_bits(
                U8(), [&](std::size_t j) HWY_ATTR { return hn::TestBit(hn::Load(U8(), codes + i + j), bit); });
            std::memcpy(plane + i / 8, &all, sizeof all);
          }
        }
        return true;
      });
}

template <class To>
void qsgd_decode_to(const std::byte* message, std::size_t n, int bits, float* out, const To& to) {
  const Qsgd form{bits};
  decode_blocks(form, message, n, out, [&](const std::byte* from, std::size_t, float* block) HWY_ATTR {
    HWY_ALIGN std::uint8_t codes[kQsgdBlock];
    for (std::size_t i = 0; i < kQsgdBlock; i += 64) {
      std::uint64_t planes[8];
      for (std::size_t p = 0; p < form.planes(); ++p) {
        std::memcpy(&planes[p], from + Qsgd::kHead + p * Qsgd::kPlane + i / 8, sizeof planes[p]);
      }
      for (std::size_t j = 0; j < 64; j += kBytes) {
        auto code = hn::Zero(U8());
        for (int p = 0; p < bits; ++p) {
          const auto bit = hn::Set(U8(), static_cast<std::uint8_t>(1 << p));
          code = hn::Or(code, hn::IfThenElseZero(mask_of(U8(), planes[p], j), bit));
        }
        hn::Store(code, U8(), codes + i + j);
      }
    }
    read_codes<kQsgdBlock>(codes, form.levels(), from, block, to);
  });
}
void qsgd_decode_for(const std::byte* message, std::size_t n, int bits, float* out) {
  qsgd_decode_to(message, n, bits, out, Put());
}
void qsgd_add_for(const std::byte* message, std::size_t n, int bits, float factor, float* out) {
  qsgd_decode_to(message, n, bits, out, Add{factor});
}

// ---- terngrad: byte j of m holds the codes of elements j, m + j, … 4m + j as digits of base 3 ----

struct Tern {
  static constexpr std::size_t kBlock = kTernBlock, kHead = sizeof(float), kPlane = kTernBlock / 5, kMostPlanes = 1;
  static constexpr std::size_t planes() { return 1; }
};
static_assert(Tern::kPlane == 64);

bool tern_encode_for(const float* x, std::size_t n, std::uint64_t key, std::byte* message, float* left) {
  HWY_ALIGN std::uint8_t codes[kTernBlock + 64] = {};  // the last read past the block
  return encode_blocks(Tern(), x, n, message, left,
                       [&](const float* from, std::size_t count, std::byte* to, float* rest) HWY_ATTR {
                         const std::size_t m = plane_bytes<Tern>(count);
                         key = mixed(key);
                         if (!draw_codes<kTernBlock>(from, 1, key, to, codes, rest)) return false;
                         for (std::size_t j = 0; j < Tern::kPlane; j += kBytes) {
                           auto byte = hn::LoadU(U8(), codes + 4 * m + j);
                           for (std::size_t k = 4; k-- > 0;) {
                             byte = hn::Add(hn::Add(byte, hn::Add(byte, byte)), hn::LoadU(U8(), codes + k * m + j));
                           }
                           hn::StoreU(byte, U8(), reinterpret_cast<std::uint8_t*>(to + Tern::kHead) + j);
                         }
                         return true;
                       });
}

template <class To>
void tern_decode_to(const std::byte* message, std::size_t n, float* out, const To& to) {
  decode_blocks(Tern(), message, n, out, [&](const std::byte* from, std::size_t count, float* block) HWY_ATTR {
    HWY_ALIGN std::uint8_t codes[kTernBlock];
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from + Tern::kHead);
    for (std::size_t j = 0; j < Tern::kPlane; j += kBytes) {
      auto rest = hn::LoadU(U8(), bytes + j);
      std::uint8_t unit = 81;
      for (std::size_t k = 5; k-- > 0; unit = static_cast<std::uint8_t>(unit / 3)) {
        const auto one = hn::Set(U8(), unit), two = hn::Set(U8(), static_cast<std::uint8_t>(2 * unit));
        const auto below = hn::Set(U8(), 1);
        const auto is_two = hn::Gt(rest, hn::Sub(two, below)), is_one = hn::Gt(rest, hn::Sub(one, below));
        const auto digit = hn::IfThenElse(is_two, hn::Set(U8(), 2), hn::IfThenElseZero(is_one, hn::Set(U8(), 1)));
        rest = hn::Sub(rest, hn::IfThenElse(is_two, two, hn::IfThenElseZero(is_one, one)));
        hn::Store(digit, U8(), codes + k * Tern::kPlane + j);
      }
    }
    const std::size_t m = plane_bytes<Tern>(count);
    for (std::size_t k = 1; k < 5 && m < Tern::kPlane; ++k) std::memmove(codes + k * m, codes + k * Tern::kPlane, m);
    read_codes<kTernBlock>(codes, 1, from, block, to);
  });
}
void tern_decode_for(const std::byte* message, std::size_t n, float* out) { tern_decode_to(message, n, out, Put()); }
void tern_add_for(const std::byte* message, std::size_t n, float factor, float* out) {
  tern_decode_to(message, n, out, Add{factor});
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(qsgd_encode_for);
HWY_EXPORT(qsgd_decode_for);
HWY_EXPORT(qsgd_add_for);
HWY_EXPORT(tern_encode_for);
HWY_EXPORT(tern_decode_for);
HWY_EXPORT(tern_add_for);

bool qsgd_encode(const float* x, std::size_t n, int bits, std::uint64_t key, std::byte* message, float* left) {
  return HWY_DYNAMIC_DISPATCH(qsgd_encode_for)(x, n, bits, key, message, left);
}
void qsgd_decode(const std::byte* message, std::size_t n, int bits, float* out) {
  HWY_DYNAMIC_DISPATCH(qsgd_decode_for)(message, n, bits, out);
}
void qsgd_add(const std::byte* message, std::size_t n, int bits, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(qsgd_add_for)(message, n, bits, factor, out);
}
bool tern_encode(const float* x, std::size_t n, std::uint64_t key, std::byte* message, float* left) {
  return HWY_DYNAMIC_DISPATCH(tern_encode_for)(x, n, key, message, left);
}
void tern_decode(const std::byte* message, std::size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(tern_decode_for)(message, n, out);
}
void tern_add(const std::byte* message, std::size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(tern_add_for)(message, n, factor, out);
}

}  // namespace trireme::compress::kernels
#endif
