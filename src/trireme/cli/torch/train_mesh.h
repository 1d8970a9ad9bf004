// A training run whose model is cut, on a mesh of workers.
#pragma once
#include "trireme/collective/run/communicator.h"
#include "trireme/trainer/trainer.h"

namespace trireme::cli {

bool needs_servers(const train::Config& config);

// Chooses the mesh, and starts servers where the strategy needs them. Collective.
train::TrainResult train_on_mesh(const train::Config& config, train::Workload& workload, Communicator& world,
                                 train::WorkerGroup& group, train::TrainOptions how);

}  // namespace trireme::cli
