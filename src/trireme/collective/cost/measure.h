// Measures what calls cost on this machine and transport, for `auto` to decide from.
#pragma once
#include <functional>
#include <string_view>

#include "trireme/collective/cost/tuning.h"
#include "trireme/collective/run/communicator.h"

namespace trireme {

// How thorough to be. The default takes some seconds.
struct Effort {
  double burst_s = 0.015;          // of calls timed together
  std::size_t largest = 64 << 20;  // bytes of the largest call
  bool every_algorithm = true;     // what the model misses of each: LinkModel::corrections
};

// Collective; every rank returns the same. `progress` hears what is being measured.
Tuning measure_tuning(Communicator& comm, const std::function<void(std::string_view)>& progress,
                      const Effort& effort = {});

}  // namespace trireme
