// Whether communication has a core to itself: then it overlaps with compute, else it only interrupts it.
#pragma once
#include "trireme/collective/run/communicator.h"
#include "trireme/sync/exchange/bucket_all_reduce.h"
#include "trireme/sync/exchange/turn.h"

namespace trireme::grad {

// With `threads` computing on each rank of this host (0: LibTorch's setting). The same on every rank: rank 0's view.
// Collective.
bool has_spare_core(Communicator& comm, int threads);

// In line where ranks share memory and no core is spare; a wire can be waited for in the background even then.
sync::Turn turn_for(Communicator& comm, int threads);

}  // namespace trireme::grad
