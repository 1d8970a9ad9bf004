// Phases: schedules over a partition of a buffer that algorithms put together with then(). `rank` is the rank itself;
// the number of ranks is that of the partition's blocks.
#pragma once
#include "trireme/collective/steps.h"

namespace trireme::schedules {

// Reduce-scatter: every rank holds all blocks and ends with the sum of its own; the others hold partial sums.
Schedule ring_reduce_scatter_phase(int rank, Partition block);
// All-gather: every rank holds its own block and ends with all.
Schedule ring_all_gather_phase(int rank, Partition block);

}  // namespace trireme::schedules
