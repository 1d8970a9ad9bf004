// The training loop: from a batch to the next weights, on every worker at once.
#pragma once
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trireme/collective/run/communicator.h"
#include "trireme/parallel/mesh.h"
#include "trireme/ps/client/client.h"
#include "trireme/report/prediction/prediction.h"
#include "trireme/report/progress.h"
#include "trireme/train/config/config.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

struct TrainOptions {
  bool resume = false;  // from the newest whole checkpoint in config.out
  Verbosity verbosity = Verbosity::kNormal;
  // Not 0: this worker was asked to stop; all of them then save and end after the step at hand.
  const volatile std::sig_atomic_t* stop = nullptr;
  ps::Client* client = nullptr;  // for strategies that need servers
  Mesh* mesh = nullptr;          // where the model is cut; null: every worker has all of it
  std::string mesh_why = {};     // how it was chosen, for the user
  // What a step will take, where somebody else says so: a plan, or whoever chose the mesh. None: the run says it.
  std::optional<Prediction::Told> predicted = {};
};

struct TrainResult {
  nlohmann::json summary;  // at rank 0
  bool stopped = false;    // before its end, by a signal
};

// Collective over `group`, all workers. `world` is what its workers exchange gradients and models over; one of this
// worker alone where they do so by servers. Throws what went wrong, in one line.
TrainResult train(const Config& config, Workload& work, Communicator& world, WorkerGroup& group,
                  const TrainOptions& options);

}  // namespace trireme::train
