// Positions drawn at random, the same wherever they are drawn from the same seed: one per stratum. n elements are cut
// into k strata, the first n mod k of ⌊n/k⌋ + 1 elements, the others of ⌊n/k⌋; of each one element is drawn, all
// equally likely (to 2^-24, for strata below 2^40 elements). Ascending, without repetition, in k steps that do not
// depend on each other.
#pragma once
#include <cstddef>
#include <cstdint>

#include "trireme/base/mix.h"

namespace trireme::compress {

// SplitMix64: the i-th number that follows a seed.
inline std::uint64_t nth_mixed(std::uint64_t seed, std::uint64_t i) {
  return trireme::mixed(seed + i * 0x9e3779b97f4a7c15);
}

class Strata {
 public:
  // 1 ≤ k ≤ n.
  Strata(std::size_t n, std::size_t k) : width_(n / k), wider_(n % k) {}
  std::size_t width(std::size_t i) const { return width_ + (i < wider_); }
  std::size_t start(std::size_t i) const { return i * width_ + (i < wider_ ? i : wider_); }
  // The position drawn of stratum i.
  std::size_t draw(std::uint64_t seed, std::size_t i) const {
    return start(i) + static_cast<std::size_t>(static_cast<Wide>(nth_mixed(seed, i)) * width(i) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  std::size_t width_, wider_;
};

}  // namespace trireme::compress
