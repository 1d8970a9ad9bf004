#include "trireme/compress/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "trireme/compress/codec.h"
#include "trireme/compress/draws.h"
#include "trireme/compress/kernels/sparse_kernels.h"

namespace trireme::compress {
namespace {

constexpr std::size_t kBlock = 4096;  // elements collected at a time
constexpr std::size_t kSmall = 8192;  // so few are ranked as they are

constexpr std::size_t kRanked = 4096;  // magnitudes that are compared with each other

// Some bits of a magnitude.
struct Digit {
  int shift;
  Magnitude most;
  constexpr Magnitude of(Magnitude bits) const { return bits >> shift & most; }
};
constexpr Digit kFirst{20, 0x7ff};
constexpr std::array kFurther{Digit{10, 0x3ff}, Digit{0, 0x3ff}};

Kth ranked(std::span<Magnitude> all, std::size_t k) {
  const auto kth = all.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::ranges::nth_element(all, kth, std::greater{});
  return {*kth, static_cast<std::size_t>(std::count(all.begin(), kth + 1, *kth))};
}

std::size_t sample_size(std::size_t count) { return std::clamp<std::size_t>(count / 256, 4096, 32768); }

void exactly(std::span<const float> x, std::size_t k, Selection& selection) {
  const Kth kth = kth_largest(x, k);
  if (kth.magnitude < kLeast) {
    selection.collect(x, kLeast);
  } else {
    selection.collect(x, kth.magnitude, kth.ties);
  }
}

}  // namespace

std::size_t part_of(std::size_t count, double fraction) {
  if (count == 0) return 0;
  const double part = std::ceil(fraction * static_cast<double>(count));
  return std::clamp<std::size_t>(static_cast<std::size_t>(part), 1, count);
}

void Selection::reserve(std::size_t elements) {
  if (elements <= room_) return;
  const std::size_t room = std::max(elements, 2 * room_);
  auto positions = std::make_unique_for_overwrite<std::uint64_t[]>(room);
  auto values = std::make_unique_for_overwrite<float[]>(room);
  std::copy_n(positions_.get(), size_, positions.get());
  std::copy_n(values_.get(), size_, values.get());
  positions_ = std::move(positions);
  values_ = std::move(values);
  room_ = room;
}

bool Selection::collect(std::span<const float> x, Magnitude lower, std::size_t ties, std::size_t limit) {
  TRIREME_CHECK(lower >= kLeast);
  lower = std::min(lower, kernels::kNotFinite);
  std::array<std::uint32_t, kBlock + kernels::kSlack> places;
  size_ = 0;
  if (limit < x.size()) reserve(limit + kBlock + kernels::kSlack);
  for (std::size_t start = 0; start < x.size(); start += kBlock) {
    const auto block = x.subspan(start, std::min(kBlock, x.size() - start));
    reserve(size_ + kBlock + kernels::kSlack);
    const Magnitude from = ties > 0 ? lower : lower + 1;
    const auto found = kernels::collect(block.data(), block.size(), from, values_.get() + size_, places.data());
    if (found.largest >= kernels::kNotFinite) {
      const auto bad = std::ranges::find_if_not(block, [](float value) { return std::isfinite(value); });
      throw NotFinite(start + static_cast<std::size_t>(bad - block.begin()));
    }
    std::uint64_t* const positions = positions_.get() + size_;
    for (std::size_t i = 0; i < found.count; ++i) positions[i] = start + places[i];
    const std::size_t before = std::exchange(size_, size_ + found.count);
    if (ties > 0 && ties != kAll) ties = keep(before, lower, ties);
    if (size_ > limit) return false;
  }
  return true;
}

std::size_t Selection::keep(std::size_t first, Magnitude least, std::size_t ties) {
  std::size_t kept = first;
  for (std::size_t i = first; i < size_; ++i) {
    positions_[kept] = positions_[i];
    values_[kept] = values_[i];
    const Magnitude bits = magnitude(values_[i]);
    const bool is_tied = bits == least && ties > 0;
    kept += bits > least || is_tied;
    ties -= is_tied;
  }
  size_ = kept;
  return ties;
}

void Selection::keep_largest(std::size_t k) {
  if (k >= size_) return;
  if (k == 0) {
    size_ = 0;
    return;
  }
  const Kth kth = kth_largest(values(), k);
  keep(0, kth.magnitude, kth.ties);
}

Kth kth_largest(std::span<const float> x, std::size_t k) {
  std::array<Magnitude, kRanked> few;
  if (x.size() <= kRanked / 8) {
    std::ranges::transform(x, few.begin(), magnitude);
    return ranked(std::span(few).first(x.size()), k);
  }
  // Of a gradient most have one of a few first digits: four counters for each take turns.
  std::array<std::array<std::uint32_t, kFirst.most + 1>, 4> with{};
  for (std::size_t i = 0; i < x.size(); ++i) ++with[i % with.size()][kFirst.of(magnitude(x[i]))];
  Magnitude known = kFirst.most << kFirst.shift, prefix = kFirst.most;
  std::size_t found = 0;
  for (;; --prefix) {
    found = 0;
    for (const auto& counts : with) found += counts[prefix];
    if (k <= found) break;
    k -= found;
  }
  prefix <<= kFirst.shift;
  if (found <= kRanked - 1) {  // one more may be written
    std::size_t count = 0;
    for (const float value : x) {
      few[count] = magnitude(value);
      count += (few[count] & known) == prefix;
    }
    return ranked(std::span(few).first(count), k);
  }
  for (const Digit& digit : kFurther) {
    std::array<std::size_t, kFirst.most + 1> counts{};
    for (const float value : x) {
      const Magnitude bits = magnitude(value);
      if ((bits & known) == prefix) ++counts[digit.of(bits)];
    }
    Magnitude here = digit.most;
    for (; k > counts[here]; --here) k -= counts[here];
    known |= digit.most << digit.shift;
    prefix |= here << digit.shift;
  }
  return {prefix, k};
}

Sample sample(std::span<const float> x, std::size_t size, std::uint64_t seed) {
  Sample drawn{std::make_unique_for_overwrite<float[]>(size), size};
  const Strata strata(x.size(), size);
  for (std::size_t i = 0; i < size; ++i) drawn.values[i] = x[strata.draw(seed, i)];
  return drawn;
}

void select_largest(std::span<const float> x, std::size_t k, Selection& selection) {
  if (x.size() <= kSmall || k > x.size() / 4) return x.empty() ? selection.keep_largest(0) : exactly(x, k, selection);
  // So far down the sample that, four standard deviations aside, k elements are as large.
  const std::size_t size = sample_size(x.size());
  const double share = static_cast<double>(size) / static_cast<double>(x.size());
  const double expected = share * static_cast<double>(k);
  const double rank = expected + 4 * std::sqrt(expected) + 4;
  const auto lower = kth_largest(sample(x, size, 1).all(), std::min(size, static_cast<std::size_t>(rank))).magnitude;
  const auto limit = static_cast<std::size_t>(2 * rank / share);
  if (!selection.collect(x, std::max(lower, kLeast), Selection::kAll, limit)) return exactly(x, k, selection);
  if (selection.size() < k && lower > kLeast) return exactly(x, k, selection);
  selection.keep_largest(k);
}

Magnitude estimate(std::span<const float> x, std::size_t k, std::uint64_t seed) {
  if (x.size() <= kSmall) return std::max(kLeast, kth_largest(x, k).magnitude);
  const std::size_t size = sample_size(x.size());
  const double rank = std::round(static_cast<double>(k) * static_cast<double>(size) / static_cast<double>(x.size()));
  return std::max(kLeast,
                  kth_largest(sample(x, size, seed).all(), static_cast<std::size_t>(std::max(1.0, rank))).magnitude);
}

void select_about(std::span<const float> x, std::size_t k, std::uint64_t seed, Selection& selection) {
  if (x.empty()) return selection.keep_largest(0);
  const Magnitude lower = estimate(x, k, seed);
  const bool fits = selection.collect(x, lower, Selection::kAll, 2 * k);
  if (!fits || (2 * selection.size() < k && lower > kLeast)) select_largest(x, k, selection);
}

}  // namespace trireme::compress
