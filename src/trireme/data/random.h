// Random numbers as a function of where they are used: the same on every machine, in any order, on any thread.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "trireme/base/mix.h"

namespace trireme::data {

inline std::uint64_t random_at(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  return mixed(mixed(mixed(seed) ^ a) ^ b);
}

// From 0 to `bound` - 1; `bound` is at most 2³².
inline std::uint64_t below(std::uint64_t random, std::uint64_t bound) { return ((random >> 32) * bound) >> 32; }

// Nearly normal with mean 0 and deviation 1: the sum of four uniforms, the same bits everywhere.
inline float normal(std::uint64_t random) {
  const auto sum = (random & 0xffff) + (random >> 16 & 0xffff) + (random >> 32 & 0xffff) + (random >> 48);
  return (static_cast<float>(sum) - 131070.0f) * (1.7320508f / 65536.0f);
}

// 0 to `size` - 1 in the order that belongs to (seed, stream).
inline std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[below(random_at(seed, stream, left), left)]);
  }
  return order;
}

}  // namespace trireme::data
