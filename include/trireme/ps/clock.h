// The three consistency models as two rules about clocks. A worker's clock c is how often it has pushed; its k-th push,
// counted from 0, is of clock k; the minimum is over the workers that count. With staleness s:
//
//   an update of clock k is visible        once minimum ≥ k − s + 1
//   a pull at clock c is answered          once minimum ≥ c − s
//
// So who reads at clock c sees everyone's updates up to c − s − 1 and its own up to c − 1, and nobody's beyond
// c + s − 1. With s = 0 a round is complete before anyone sees any of it: BSP. Asynchronous: both at once, always.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::ps {

struct Consistency {
  bool async = false;
  std::uint64_t s = 0;
  bool operator==(const Consistency&) const = default;

  static Consistency bsp() { return {}; }
  static Consistency ssp(std::uint64_t s) { return {false, s}; }
  static Consistency asynchronous() { return {true, 0}; }

  bool visible(std::uint64_t clock, std::uint64_t minimum) const {
    return async || minimum >= kEveryone - s || minimum + s >= clock + 1;
  }
  bool answered(std::uint64_t clock, std::uint64_t minimum) const {
    return async || minimum >= kEveryone - s || minimum + s >= clock;
  }
  // The minimum over nobody.
  static constexpr std::uint64_t kEveryone = UINT64_MAX;
};

// "bsp", "ssp:3", "async"; throws ConfigError listing them.
Consistency parse_consistency(std::string_view text);
std::string to_string(const Consistency& consistency);

}  // namespace trireme::ps
