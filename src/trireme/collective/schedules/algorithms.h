// The plans behind the list in algorithms.cpp, by file.
#pragma once
#include "trireme/collective/schedule.h"

namespace trireme::schedules {

// direct.cpp, inline.cpp, staged.cpp: every collective, by call.what.
Schedule direct(const Call& call);
Schedule inlined(const Call& call);
Schedule staged(const Call& call);

// ring.cpp
Schedule ring_all_reduce(const Call& call);
Schedule ring_all_gather(const Call& call);
Schedule ring_reduce_scatter(const Call& call);

// exchange.cpp
Schedule naive_all_reduce(const Call& call);
Schedule naive_reduce_scatter(const Call& call);
Schedule naive_all_gather(const Call& call);
Schedule naive_all_to_all(const Call& call);
Schedule round_robin_all_reduce(const Call& call);
Schedule round_robin_reduce_scatter(const Call& call);
Schedule round_robin_all_gather(const Call& call);
Schedule round_robin_all_to_all(const Call& call);

// canonical.cpp
Schedule canonical_all_reduce(const Call& call);
Schedule canonical_reduce(const Call& call);

// flat.cpp
Schedule flat_broadcast(const Call& call);
Schedule flat_scatter(const Call& call);
Schedule flat_gather(const Call& call);
Schedule flat_reduce(const Call& call);
Schedule master_worker_all_reduce(const Call& call);

// mst.cpp
Schedule mst_broadcast(const Call& call);
Schedule mst_scatter(const Call& call);
Schedule mst_gather(const Call& call);
Schedule mst_reduce(const Call& call);
Schedule mst_all_reduce(const Call& call);

// tree.cpp
Schedule tree_all_reduce(const Call& call);
Schedule double_tree_all_reduce(const Call& call);
Schedule tree_broadcast(const Call& call);
Schedule tree_barrier(const Call& call);

// butterfly.cpp, halving.cpp
Schedule butterfly_all_reduce(const Call& call);
Schedule butterfly_all_gather(const Call& call);
Schedule halving_doubling_all_reduce(const Call& call);
Schedule halving_reduce_scatter(const Call& call);

// circulant.cpp, bruck.cpp
Schedule circulant_all_reduce(const Call& call);
Schedule circulant_all_gather(const Call& call);
Schedule circulant_reduce_scatter(const Call& call);
Schedule bruck_all_to_all(const Call& call);

// composed.cpp
Schedule scatter_all_gather_broadcast(const Call& call);
Schedule reduce_scatter_gather_reduce(const Call& call);
Schedule gather_broadcast_all_gather(const Call& call);
Schedule composed_reduce_scatter(const Call& call);

// barrier.cpp
Schedule dissemination_barrier(const Call& call);

}  // namespace trireme::schedules
