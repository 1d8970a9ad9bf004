// Weights that all workers of one process share.
#pragma once
#include <memory>

#include "trireme/collective/run/communicator.h"

namespace trireme::sync {

// The same zeros on every rank, freed with the last rank's reference. Collective. ConfigError if the ranks are not
// threads of one process.
std::shared_ptr<float[]> shared_weights(Communicator& world, std::size_t count);

}  // namespace trireme::sync
