// The blocks of sign and onebit, for every SIMD target. Element i of a block is summed in lane i mod 16, in f64, and
// the lanes one after another: the same sum for every width of vectors, and of equal numbers an exact one.
#include <algorithm>
#include <limits>

#include "trireme/compress/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/sign_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/compress/kernels/bits-inl.h"
#include "trireme/compress/kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {

using F64 = hn::ScalableTag<double>;
using Half = hn::Rebind<float, F64>;
constexpr std::size_t kWide = hn::MaxLanes(F64());

template <std::size_t kHeadBytes>
struct Signs {
  static constexpr std::size_t kBlock = kSignBlock, kHead = kHeadBytes, kPlane = kSignBlock / 8, kMostPlanes = 1;
  static constexpr std::size_t planes() { return 1; }
};
using Sign = Signs<sizeof(float)>;
using OneBit = Signs<2 * sizeof(float)>;

// The sum over a block of part(x), which takes and gives vectors of Half.
template <class Part>
HWY_INLINE double sum_of(const float* x, const Part& part) {
  hn::Vec<F64> sums[16 / kWide];
  for (auto& sum : sums) sum = hn::Zero(F64());
  for (std::size_t i = 0; i < kSignBlock; i += 16) {
    for (std::size_t j = 0; j < 16; j += kWide) {
      const auto v = part(hn::LoadU(Half(), x + i + j));
      sums[j / kWide] = hn::Add(sums[j / kWide], hn::PromoteTo(F64(), v));
    }
  }
  HWY_ALIGN double lanes[16];
  for (std::size_t j = 0; j < 16; j += kWide) hn::Store(sums[j / kWide], F64(), lanes + j);
  double total = 0;
  for (double lane : lanes) total += lane;
  return total;
}

// Bit i is set where element i is below zero.
HWY_INLINE std::uint64_t signs_of(const float* x) {
  return gather_bits(F32(), [&](std::size_t i) HWY_ATTR { return hn::Lt(hn::LoadU(F32(), x + i), hn::Zero(F32())); });
}

struct Words {
  std::uint64_t words[kSignBlock / 64];
};

// left ← x − up where x ≥ 0, x − down elsewhere.
HWY_INLINE void take_off(const float* x, const Words& signs, float up, float down, float* left) {
  for (std::size_t i = 0; i < kSignBlock; i += kLanes) {
    const auto said =
        hn::IfThenElse(mask_of(F32(), signs.words[i / 64], i % 64), hn::Set(F32(), down), hn::Set(F32(), up));
    hn::StoreU(hn::Sub(hn::LoadU(F32(), x + i), said), F32(), left + i);
  }
}

HWY_INLINE Words all_signs(const float* x) {
  Words signs;
  for (std::size_t i = 0; i < kSignBlock; i += 64) signs.words[i / 64] = signs_of(x + i);
  return signs;
}

bool sign_encode_for(const float* x, std::size_t n, std::byte* message, float* left) {
  return encode_blocks(Sign(), x, n, message, left,
                       [](const float* from, std::size_t count, std::byte* to, float* rest) HWY_ATTR {
                         if (largest_bits<kSignBlock>(from) >= 0x7f800000) return false;
                         const double sum = sum_of(from, [](auto v) HWY_ATTR { return hn::Abs(v); });
                         const float scale = static_cast<float>(sum / static_cast<double>(count));
                         const Words signs = all_signs(from);
                         put(to, scale);
                         std::memcpy(to + Sign::kHead, &signs, sizeof signs);
                         if (rest) take_off(from, signs, scale, -scale, rest);
                         return true;
                       });
}

bool onebit_encode_for(const float* x, std::size_t n, std::byte* message, float* left) {
  return encode_blocks(
      OneBit(), x, n, message, left, [](const float* from, std::size_t count, std::byte* to, float* rest) HWY_ATTR {
        if (largest_bits<kSignBlock>(from) >= 0x7f800000) return false;
        const double up = sum_of(from, [](auto v) HWY_ATTR { return hn::Max(v, hn::Zero(Half())); });
        const double down = sum_of(from, [](auto v) HWY_ATTR { return hn::Max(hn::Neg(v), hn::Zero(Half())); });
        const Words signs = all_signs(from);
        int below = 0;
        for (auto word : signs.words) below += std::popcount(word);
        const int above = static_cast<int>(count) - below;
        const float high = above ? static_cast<float>(up / above) : 0.0f,
                    low = below ? static_cast<float>(down / below) : 0.0f;
        put(to, high);
        put(to + sizeof(float), low);
        std::memcpy(to + OneBit::kHead, &signs, sizeof signs);
        if (rest) take_off(from, signs, high, -low, rest);
        return true;
      });
}

template <class F, class To>
void signs_decode_to(const std::byte* message, std::size_t n, float* out, const To& to) {
  decode_blocks(F(), message, n, out, [&](const std::byte* from, std::size_t, float* block) HWY_ATTR {
    Words signs;
    std::memcpy(&signs, from + F::kHead, sizeof signs);
    const auto up = hn::Set(F32(), get(from)), down = hn::Set(F32(), -get(from + F::kHead - sizeof(float)));
    for (std::size_t i = 0; i < kSignBlock; i += kLanes) {
      to(hn::IfThenElse(mask_of(F32(), signs.words[i / 64], i % 64), down, up), block + i);
    }
  });
}
void sign_decode_for(const std::byte* message, std::size_t n, float* out) {
  signs_decode_to<Sign>(message, n, out, Put());
}
void sign_add_for(const std::byte* message, std::size_t n, float factor, float* out) {
  signs_decode_to<Sign>(message, n, out, Add{factor});
}
void onebit_decode_for(const std::byte* message, std::size_t n, float* out) {
  signs_decode_to<OneBit>(message, n, out, Put());
}
void onebit_add_for(const std::byte* message, std::size_t n, float factor, float* out) {
  signs_decode_to<OneBit>(message, n, out, Add{factor});
}

// ---- The vote ----

struct Ballot {
  HWY_ALIGN float votes[kSignBlock] = {}, weights[kSignBlock] = {};

  HWY_INLINE void cast(const Words& signs, float weight) {
    const F32 d;
    for (std::size_t i = 0; i < kSignBlock; i += kLanes) {
      const auto below = mask_of(d, signs.words[i / 64], i % 64);
      const auto vote = hn::IfThenElse(below, hn::Set(d, -1.0f), hn::Set(d, 1.0f));
      hn::Store(hn::Add(hn::Load(d, votes + i), vote), d, votes + i);
      hn::Store(hn::Add(hn::Load(d, weights + i), hn::Mul(vote, hn::Set(d, weight))), d, weights + i);
    }
  }
  // ±size, by the votes, else by the weights, else by whether the element is even.
  HWY_INLINE void count(float size, float* out) const {
    const F32 d;
    const auto zero = hn::Zero(d);
    for (std::size_t i = 0; i < kSignBlock; i += kLanes) {
      const auto vote = hn::Load(d, votes + i), weight = hn::Load(d, weights + i);
      const auto place = hn::Add(hn::Iota(U32(), 0), hn::Set(U32(), static_cast<std::uint32_t>(i)));
      const auto odd = hn::And(place, hn::Set(U32(), 1));
      const auto lot = hn::Neg(hn::ConvertTo(d, hn::BitCast(I32(), odd)));
      const auto last = hn::IfThenElse(hn::Eq(weight, zero), lot, weight);
      const auto score = hn::IfThenElse(hn::Eq(vote, zero), last, vote);
      hn::StoreU(hn::IfThenElse(hn::Lt(score, zero), hn::Set(d, -size), hn::Set(d, size)), d, out + i);
    }
  }
};

void sign_vote_for(std::span<const std::span<const std::byte>> messages, std::size_t n, float factor, float* out) {
  constexpr std::size_t kStride = Sign::kHead + Sign::kPlane;
  constexpr double kMost = std::numeric_limits<float>::max();
  for (std::size_t done = 0, at = 0; done < n; done += kSignBlock, at += kStride) {
    const std::size_t count = std::min(kSignBlock, n - done);
    double total = 0;
    float largest = 0;
    for (const auto& message : messages) {
      total += get(message.data() + at);
      largest = std::max(largest, get(message.data() + at));
    }
    Ballot ballot;
    for (const auto& message : messages) {
      const float scale = get(message.data() + at);
      if (scale == 0) continue;
      Words signs{};
      std::memcpy(&signs, message.data() + at + Sign::kHead, plane_bytes<Sign>(count));
      ballot.cast(signs, scale / largest);
    }
    const float size = static_cast<float>(std::clamp(factor * total, -kMost, kMost));
    HWY_ALIGN float block[kSignBlock];
    ballot.count(size, block);
    std::memcpy(out + done, block, count * sizeof(float));
  }
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(sign_encode_for);
HWY_EXPORT(sign_decode_for);
HWY_EXPORT(sign_add_for);
HWY_EXPORT(sign_vote_for);
HWY_EXPORT(onebit_encode_for);
HWY_EXPORT(onebit_decode_for);
HWY_EXPORT(onebit_add_for);

bool sign_encode(const float* x, std::size_t n, std::byte* message, float* left) {
  return HWY_DYNAMIC_DISPATCH(sign_encode_for)(x, n, message, left);
}
void sign_decode(const std::byte* message, std::size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(sign_decode_for)(message, n, out);
}
void sign_add(const std::byte* message, std::size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(sign_add_for)(message, n, factor, out);
}
void sign_vote(std::span<const std::span<const std::byte>> messages, std::size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(sign_vote_for)(messages, n, factor, out);
}
bool onebit_encode(const float* x, std::size_t n, std::byte* message, float* left) {
  return HWY_DYNAMIC_DISPATCH(onebit_encode_for)(x, n, message, left);
}
void onebit_decode(const std::byte* message, std::size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(onebit_decode_for)(message, n, out);
}
void onebit_add(const std::byte* message, std::size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(onebit_add_for)(message, n, factor, out);
}

}  // namespace trireme::compress::kernels
#endif
