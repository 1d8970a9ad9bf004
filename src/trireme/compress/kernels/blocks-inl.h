// The loop over the blocks of a tensor, whose last is brought to full length by zeros, and the uniform quantizer of one
// block. Included once per SIMD target.
//
// A codec's form F gives kBlock elements, kHead bytes of scales, planes() planes of kPlane bytes each, when full. A
// plane of n elements has kPlane·n/kBlock bytes, rounded up.
#if defined(TRIREME_COMPRESS_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_COMPRESS_BLOCKS_INL_H_
#undef TRIREME_COMPRESS_BLOCKS_INL_H_
#else
#define TRIREME_COMPRESS_BLOCKS_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;
using I32 = hn::ScalableTag<std::int32_t>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());
static_assert(16 % kLanes == 0);

template <class F>
constexpr std::size_t plane_bytes(std::size_t n) {
  return (F::kPlane * n + F::kBlock - 1) / F::kBlock;
}

HWY_INLINE void put(std::byte* message, float value) { std::memcpy(message, &value, sizeof value); }
HWY_INLINE float get(const std::byte* message) {
  float value;
  std::memcpy(&value, message, sizeof value);
  return value;
}

// one(x, n, payload, left) encodes a block with its scales; false ends the loop.
template <class F, class One>
bool encode_blocks(const F& form, const float* x, std::size_t n, std::byte* message, float* left, const One& one) {
  const std::size_t stride = F::kHead + form.planes() * F::kPlane;
  for (; n >= F::kBlock; n -= F::kBlock) {
    if (HWY_UNLIKELY(!one(x, F::kBlock, message, left))) return false;
    x += F::kBlock;
    message += stride;
    if (left) left += F::kBlock;
  }
  if (n == 0) return true;
  HWY_ALIGN float part[F::kBlock] = {};
  std::byte whole[F::kHead + F::kMostPlanes * F::kPlane];
  std::memcpy(part, x, n * sizeof(float));
  if (!one(part, n, whole, left ? part : nullptr)) return false;
  const std::size_t bytes = plane_bytes<F>(n);
  std::memcpy(message, whole, F::kHead);
  for (std::size_t p = 0; p < form.planes(); ++p) {
    std::memcpy(message + F::kHead + p * bytes, whole + F::kHead + p * F::kPlane, bytes);
  }
  if (left) std::memcpy(left, part, n * sizeof(float));
  return true;
}

// one(payload, n, out) decodes a block, or adds it to out.
template <class F, class One>
void decode_blocks(const F& form, const std::byte* message, std::size_t n, float* out, const One& one) {
  const std::size_t stride = F::kHead + form.planes() * F::kPlane;
  for (; n >= F::kBlock; n -= F::kBlock) {
    one(message, F::kBlock, out);
    message += stride;
    out += F::kBlock;
  }
  if (n == 0) return;
  HWY_ALIGN float part[F::kBlock] = {};
  std::byte whole[F::kHead + F::kMostPlanes * F::kPlane] = {};
  const std::size_t bytes = plane_bytes<F>(n);
  std::memcpy(whole, message, F::kHead);
  for (std::size_t p = 0; p < form.planes(); ++p) {
    std::memcpy(whole + F::kHead + p * F::kPlane, message + F::kHead + p * bytes, bytes);
  }
  std::memcpy(part, out, n * sizeof(float));
  one(whole, n, part);
  std::memcpy(out, part, n * sizeof(float));
}

// How decoded vectors reach out: they take its place, or are added.
struct Put {
  HWY_INLINE void operator()(hn::Vec<F32> v, float* out) const { hn::StoreU(v, F32(), out); }
};
struct Add {
  float factor;
  HWY_INLINE void operator()(hn::Vec<F32> v, float* out) const {
    const F32 d;
    hn::StoreU(hn::Add(hn::LoadU(d, out), hn::Mul(hn::Set(d, factor), v)), d, out);
  }
};

// ---- The uniform quantizer: x̂ = q·step, q whole and |q| ≤ levels ----

// The largest |x| as bits: those of infinity, or more, where one is not finite.
template <std::size_t kCount>
HWY_INLINE std::uint32_t largest_bits(const float* x) {
  const U32 d;
  const auto bits = [&](std::size_t i)
                        HWY_ATTR { return hn::And(hn::BitCast(d, hn::LoadU(F32(), x + i)), hn::Set(d, 0x7fffffff)); };
  auto a = hn::Zero(d), b = hn::Zero(d);
  for (std::size_t i = 0; i < kCount; i += 2 * kLanes) {
    a = hn::Max(a, bits(i));
    b = hn::Max(b, bits(i + kLanes));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
}

struct Step {
  float step, inverse;
};
// A block so small that its step would not be a normal number is zero. The largest numbers are cut a little, lest
// levels·step round up to infinity: far less than half a step.
HWY_INLINE Step step_of(std::uint32_t largest, float levels) {
  const float size = std::bit_cast<float>(largest), most = 3.4028e38f;
  const float step = (size < most ? size : most) / levels;
  if (!(step >= std::numeric_limits<float>::min())) return {0, 0};
  return {step, 1 / step};
}

// To whole numbers, to nearest even, by an addition that leaves no room for fractions; |v| < 2²².
constexpr float kWhole = 12582912;  // 1.5·2²³

// No noise: to the nearest.
struct Nearest {
  HWY_INLINE hn::Vec<F32> operator()(hn::Vec<F32> v, std::size_t) const { return v; }
};

// keep(i, q) takes the q of the elements from i on; left ← x − q·step.
template <std::size_t kCount, class Noise, class Keep>
HWY_INLINE void quantize(const float* x, const Step& step, float levels, const Noise& noise, float* left,
                         const Keep& keep) {
  const F32 d;
  const auto inverse = hn::Set(d, step.inverse), whole = hn::Set(d, kWhole);
  for (std::size_t i = 0; i < kCount; i += kLanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto at = noise(hn::Mul(v, inverse), i);
    const auto lifted = hn::Add(hn::Min(hn::Max(at, hn::Set(d, -levels)), hn::Set(d, levels)), whole);
    keep(i, hn::Sub(hn::BitCast(I32(), lifted), hn::BitCast(I32(), whole)));
    if (left) hn::StoreU(hn::Sub(v, hn::Mul(hn::Sub(lifted, whole), hn::Set(d, step.step))), d, left + i);
  }
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
