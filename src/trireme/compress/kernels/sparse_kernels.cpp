// The loops of sparse codecs, for every SIMD target.
#include "trireme/compress/kernels/sparse_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/sparse_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Those of the first x, as many as were looked at.
struct Looked {
  std::size_t elements, count;
  std::uint32_t largest;
};

// Without branches: at one in a hundred, whether a vector has an element to send cannot be foretold. Compressed in a
// register and stored whole, as compressing stores are slow on some processors.
Looked collect_vectors(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places) {
  // Magnitudes are below 2^31: signed comparisons, which all targets have, do.
  const hn::ScalableTag<float> f;
  const hn::RebindToSigned<decltype(f)> d;
  const hn::RebindToUnsigned<decltype(f)> u;
  constexpr std::size_t kLanes = hn::MaxLanes(f);
  static_assert(kLanes <= kSlack);
  const auto below = hn::Set(d, static_cast<std::int32_t>(lower - 1)), sign_off = hn::Set(d, 0x7fffffff);
  auto largest = hn::Zero(d);
  auto place = hn::Iota(d, 0);
  std::size_t i = 0, count = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto value = hn::LoadU(f, x + i);
    const auto magnitude = hn::And(hn::BitCast(d, value), sign_off);
    largest = hn::Max(largest, magnitude);
    const auto wanted = hn::Gt(magnitude, below);
    hn::StoreU(hn::Compress(value, hn::RebindMask(f, wanted)), f, values + count);
    hn::StoreU(hn::BitCast(u, hn::Compress(place, wanted)), u, places + count);
    count += hn::CountTrue(d, wanted);
    place = hn::Add(place, hn::Set(d, static_cast<std::int32_t>(kLanes)));
  }
  return {i, count, static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, largest)))};
}

// Sixty-four comparisons make a word, whose ones are then gone through: where one in a hundred is wanted, most words
// have one or none.
Looked collect_words(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places) {
  const hn::ScalableTag<float> f;
  const hn::RebindToSigned<decltype(f)> d;
  constexpr std::size_t kLanes = hn::MaxLanes(f), kWord = 64;
  static_assert(kWord % kLanes == 0);
  const auto below = hn::Set(d, static_cast<std::int32_t>(lower - 1)), sign_off = hn::Set(d, 0x7fffffff);
  auto largest = hn::Zero(d);
  std::size_t i = 0, count = 0;
  for (; i + kWord <= n; i += kWord) {
    std::uint64_t wanted = 0;
    for (std::size_t j = 0; j < kWord; j += kLanes) {
      const auto magnitude = hn::And(hn::BitCast(d, hn::LoadU(f, x + i + j)), sign_off);
      largest = hn::Max(largest, magnitude);
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::Gt(magnitude, below), bits);
      std::uint64_t lanes = 0;
      std::memcpy(&lanes, bits, sizeof bits);
      wanted |= lanes << j;
    }
    for (; wanted != 0; wanted &= wanted - 1, ++count) {
      const std::size_t place = i + static_cast<std::size_t>(std::countr_zero(wanted));
      values[count] = x[place];
      places[count] = static_cast<std::uint32_t>(place);
    }
  }
  return {i, count, static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, largest)))};
}

// Vectors where a processor has an instruction that compresses them: AVX2 has none, and took ten times as long.
Collected collect_for(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places) {
  constexpr bool kCompresses = HWY_TARGET <= HWY_AVX3;
  auto [i, count, most] =
      kCompresses ? collect_vectors(x, n, lower, values, places) : collect_words(x, n, lower, values, places);
  for (; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffff;
    most = std::max(most, magnitude);
    values[count] = x[i];
    places[count] = static_cast<std::uint32_t>(i);
    count += magnitude >= lower;
  }
  return {count, most};
}

// Sixteen sums, of every sixteenth element each, whatever the width of vectors.
double sum_of_squares_for(const float* x, std::size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> f;
  constexpr std::size_t kLanes = hn::MaxLanes(d), kSums = 16;
  static_assert(kSums % kLanes == 0);
  decltype(hn::Zero(d)) vectors[kSums / kLanes];
  for (auto& vector : vectors) vector = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (std::size_t j = 0; j < kSums / kLanes; ++j) {
      const auto wide = hn::PromoteTo(d, hn::LoadU(f, x + i + j * kLanes));
      vectors[j] = hn::Add(vectors[j], hn::Mul(wide, wide));
    }
  }
  double sums[kSums];
  for (std::size_t j = 0; j < kSums / kLanes; ++j) hn::StoreU(vectors[j], d, sums + j * kLanes);
  for (std::size_t j = 0; i < n; ++i, ++j) sums[j] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (std::size_t half = kSums / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

void momentum_for(const float* g, float scale, float m, float* u, float* v, std::size_t n) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const hn::ScalableTag<float> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const auto within = [&](auto x) HWY_ATTR { return hn::Min(hn::Max(x, hn::Set(d, -kMost)), hn::Set(d, kMost)); };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto kept = hn::Mul(hn::LoadU(d, u + i), hn::Set(d, m)),
               fresh = hn::Mul(hn::LoadU(d, g + i), hn::Set(d, scale));
    const auto velocity = within(hn::Add(kept, fresh));
    hn::StoreU(velocity, d, u + i);
    hn::StoreU(within(hn::Add(hn::LoadU(d, v + i), velocity)), d, v + i);
  }
  for (; i < n; ++i) {
    u[i] = std::clamp(u[i] * m + g[i] * scale, -kMost, kMost);
    v[i] = std::clamp(v[i] + u[i], -kMost, kMost);
  }
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(collect_for);
HWY_EXPORT(sum_of_squares_for);
HWY_EXPORT(momentum_for);

Collected collect(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places) {
  return HWY_DYNAMIC_DISPATCH(collect_for)(x, n, lower, values, places);
}
double sum_of_squares(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum_of_squares_for)(x, n); }
void momentum(const float* g, float scale, float m, float* u, float* v, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(momentum_for)(g, scale, m, u, v, n);
}

}  // namespace trireme::compress::kernels
#endif
