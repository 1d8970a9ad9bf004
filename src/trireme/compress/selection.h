// Which elements of a piece sparse codecs send: the largest, or those above a threshold.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace trireme::compress {

// |x| as a number that is ordered as |x| is, whatever x: its bits without the sign.
using Magnitude = std::uint32_t;
inline Magnitude magnitude(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffff; }
// Zeros are never sent.
inline constexpr Magnitude kLeast = 1;

// max(1, ⌈fraction · count⌉), at most count: of how many elements a fraction consists.
std::size_t part_of(std::size_t count, double fraction);

// Elements of a piece, positions ascending.
class Selection {
 public:
  std::size_t size() const { return size_; }
  std::span<const std::uint64_t> positions() const { return {positions_.get(), size_}; }
  std::span<const float> values() const { return {values_.get(), size_}; }

  // Becomes all x of this magnitude or more, in one pass; those of exactly this one only as far as `ties` go, the first
  // ones. False as soon as they are more than `limit`. Throws NotFinite, unless it is false.
  bool collect(std::span<const float> x, Magnitude lower, std::size_t ties = kAll, std::size_t limit = kAll);
  // Keeps the k largest; of equal ones the first.
  void keep_largest(std::size_t k);

  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

 private:
  void reserve(std::size_t elements);
  // Of those from `first` on keeps the larger ones and so many that are as large; returns how many more may be.
  std::size_t keep(std::size_t first, Magnitude least, std::size_t ties);

  std::size_t size_ = 0, room_ = 0;
  std::unique_ptr<std::uint64_t[]> positions_;
  std::unique_ptr<float[]> values_;
};

// The k-th largest magnitude of x, 1 ≤ k ≤ x.size(), and how many of that one are among the k largest. By radix: a
// pass over 11 bits, and where those that share them are still many two more, over 10 each.
struct Kth {
  Magnitude magnitude;
  std::size_t ties;
};
Kth kth_largest(std::span<const float> x, std::size_t k);

// One element of each of `size` equal strata of x, where in it is drawn from the seed: what strided data would hide
// from a plain stride, this sees.
struct Sample {
  std::unique_ptr<float[]> values;
  std::size_t size;
  std::span<const float> all() const { return {values.get(), size}; }
};
Sample sample(std::span<const float> x, std::size_t size, std::uint64_t seed);

// Selects exactly min(k, elements that are not zero) largest elements; of equal ones the first. A sample gives a
// threshold that a few more than k pass; one pass collects those; the k largest of them are the result. Where the
// sample misled, and fewer or many more passed, all of x is ranked.
void select_largest(std::span<const float> x, std::size_t k, Selection& selection);
// The same from a sample alone: the number is between k/2 and 2k, or as above.
void select_about(std::span<const float> x, std::size_t k, std::uint64_t seed, Selection& selection);
// The magnitude which about k elements have or exceed; at least kLeast.
Magnitude estimate(std::span<const float> x, std::size_t k, std::uint64_t seed);

}  // namespace trireme::compress
