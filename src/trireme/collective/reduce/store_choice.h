// Whether a stage is better written through the cache or past it depends on whether the cores share a cache, which on
// virtual machines changes within minutes: so it is learned while running, from what a call took the slowest rank: what
// the writer of a stage saves by writing past the cache, its readers may pay. All ranks learn the same, and so choose
// alike.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "trireme/collective/reduce/reduce.h"

namespace trireme {

// One per class of calls.
class StoreChoice {
 public:
  // Of kCycle calls the first try both, one after the other, kTrial calls each; the rest use what was better. Odd, so
  // that of calls that a step makes in the same order not always the same are tried.
  static constexpr std::uint32_t kTrial = 4, kCycle = 257;

  // The number of the next call.
  std::uint32_t begin() { return calls_++; }

  // Whether there is something to learn from it.
  static bool is_trial(std::uint32_t call) { return call % kCycle < 2 * kTrial; }

  Store store(std::uint32_t call) const {
    const bool streaming = is_trial(call) ? call % kCycle >= kTrial : cost_[1] < cost_[0];
    return streaming ? Store::streaming : Store::plain;
  }

  // What a trial took for a byte: calls of a class are not all as long. The first of a store finds the caches as the
  // other left them and does not count; of the others the fastest does, for what disturbs a call makes it slower.
  void learn(std::uint32_t call, double seconds_per_byte) {
    const auto turn = call % kCycle;
    double& fastest = fastest_[turn / kTrial];
    if (turn % kTrial != 0) fastest = std::min(fastest, seconds_per_byte);
    if (turn + 1 < 2 * kTrial) return;
    for (int k = 0; k < 2; ++k) {
      cost_[k] = call < kCycle ? fastest_[k] : (cost_[k] + fastest_[k]) / 2;
      fastest_[k] = std::numeric_limits<double>::infinity();
    }
  }

 private:
  std::uint32_t calls_ = 0;
  double cost_[2] = {0, 0};  // plain, streaming
  double fastest_[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
};

}  // namespace trireme
