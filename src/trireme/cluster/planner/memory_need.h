// What a way needs of a worker's memory, and what there is. Private to the search.
//
// Without a mesh: w bytes of weights take state_factor · w with gradient and optimizer; one more w for what a codec
// carries to the next step, for a model that is averaged while it changes, for what a server with each worker keeps;
// and the activations. On a mesh the mean over stages, which the worst one cannot be below: the simulation says more.
#pragma once
#include <cstdint>

#include "trireme/cluster/planner/candidates.h"

namespace trireme::cluster {

std::uint64_t memory_needed(const Question& question, const Candidate& candidate);
// Of the worker that has least; 0: unlimited.
std::uint64_t memory_there(const Question& question, int workers);

}  // namespace trireme::cluster
