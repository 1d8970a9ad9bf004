// Replicas begin alike: models are compared in outline, then made equal to rank 0's, then compared in full.
#pragma once
#include <torch/torch.h>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/bucket_memory.h"

namespace trireme::grad {

// Throws ConfigError on every rank if names, shapes or types differ, naming a rank and the first difference.
void check_same_outline(Communicator& comm, const std::vector<Parameter>& tensors);

// Every tensor becomes root's. Collective.
void broadcast_all(Communicator& comm, const std::vector<Parameter>& tensors, int root);

// Throws Error naming the ranks whose tensors differ from rank 0's in any bit.
void check_equal(Communicator& comm, const std::vector<Parameter>& tensors);

}  // namespace trireme::grad
