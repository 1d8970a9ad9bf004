// Whether a stage is better written through the cache or past it depends on whether the cores share a cache, which on
// virtual machines changes within minutes: so it is learned while running. Each rank decides for itself.
#pragma once
#include <cstdint>

#include "trireme/collective/reduce.h"

namespace trireme {

// One per class of sizes.
class StoreChoice {
 public:
  // The better so far; every 64th call the other, to notice a change.
  Store next(std::uint64_t sequence) const {
    const bool streaming = cost_[1] < cost_[0];
    return streaming != (sequence % 64 == 0) ? Store::streaming : Store::plain;
  }
  void learn(Store used, double seconds) {
    double& cost = cost_[used == Store::streaming];
    cost = cost == 0 ? seconds : 0.75 * cost + 0.25 * seconds;
  }

 private:
  double cost_[2] = {0, 0};  // plain, streaming: a running mean; 0 before the first, so that each is tried
};

}  // namespace trireme
