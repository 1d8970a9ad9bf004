// What learns: a model with its gradients and its optimizer. A worker has one; some strategies want several.
#pragma once
#include <memory>
#include <optional>

#include "trireme/grad/data_parallel.h"
#include "trireme/sync/strategy.h"
#include "trireme/train/checkpoint/state.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/flat_model.h"
#include "trireme/train/learner/gradients.h"
#include "trireme/train/learner/held_model.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

class Learner {
 public:
  // `stream` numbers the learners of a run, for their random numbers.
  Learner(const Config& config, Workload work, int stream, sync::Strategy& strategy, HeldModel& held);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // The parameters of a model that learn, by name.
  static NamedTensors parameters(torch::nn::Module& model);

  // What learns here: the model, or this worker's part of it.
  torch::nn::Module& model() { return held.module(work); }

  void step(double lr);
  void zero_grad();
  // All that must be kept, as this worker has it, and back. Collective.
  NamedTensors model_state();
  NamedTensors optimizer_state();
  Place load(RateSchedule& schedule, const LoadedCheckpoint& checkpoint, const std::string& file);

  // Where weights change while a step computes, they do so at this rate.
  void update_with(double lr);

  Workload work;
  HeldModel& held;
  std::optional<FlatModel> flat;                 // for strategies that work on it
  std::optional<DataParallel> net;               // none where shards do
  std::shared_ptr<torch::nn::Module> exchanged;  // what `net` has of the model, where that is not all
  GradientExchange* exchange = nullptr;          // `net`, or the shards
  std::unique_ptr<Gradients> gradients;
  std::unique_ptr<Optimizer> optimizer;
};

// For whoever exchanges nothing with others.
Communicator world_of_one(const Options& options = {});

// What is not learned, running statistics, becomes its mean over all workers, or all replicas. Collective.
void average_buffers(torch::nn::Module& model, WorkerGroup& group, Communicator* replicas = nullptr);

}  // namespace trireme::train
