// Whether buckets are exchanged on threads of their own. The runtime decides by it (grad/spare_core.cpp), and so does
// the simulator.
#pragma once
#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme::sync {

// Where so many workers of a host compute with so many threads each.
constexpr bool has_spare_core(int workers, int threads, int cores) { return workers * threads < cores; }

// In line where ranks share memory and no core is spare; a wire can be waited for in the background even then.
constexpr Turn usual_turn(bool shares_memory, bool spare_core) {
  return shares_memory && !spare_core ? Turn::in_line : Turn::background;
}

}  // namespace trireme::sync
