// What a worker holds of the model it trains: all of it, or a part on a mesh. The training loop, its learners and what
// they keep ask for it here, and never which of the two it is.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/parallel/shard/shard.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/group/replica_part.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/evaluate.h"
#include "trireme/train/learner/gradients.h"
#include "trireme/train/learner/workload.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme {
class Mesh;
namespace parallel {
class Sharded;
}
}  // namespace trireme

namespace trireme::train {

class HeldModel {
 public:
  virtual ~HeldModel() = default;

  // ---- who holds the same ----

  // What gradients and models are exchanged over.
  virtual Communicator& replicas() = 0;
  // The replicas as a group: the workers, where each has the whole model.
  virtual WorkerGroup& group() = 0;
  // What they are called to the user.
  virtual std::string_view group_word() const = 0;
  virtual ReplicaPart replica_part() const = 0;

  // ---- what learns ----

  // The module of a learner's workload that learns: the model, or this worker's part of it.
  virtual torch::nn::Module& module(Workload& work) = 0;
  // What of it is exchanged, where that is not all; null: all.
  virtual std::shared_ptr<torch::nn::Module> exchanged() = 0;
  // Where something is sharded, over the replicas; else null.
  virtual parallel::Sharded* shards() = 0;
  // `net`: what exchanges the gradients; null where the shards do. `stream` numbers the run's random numbers.
  virtual std::unique_ptr<Gradients> gradients(const Config& config, Workload& work, DataParallel* net, int stream,
                                               Scale scale) = 0;
  // As in OptimizerOptions.
  virtual std::function<void(const std::string& parameter, std::span<double> squares)> over_parts() = 0;
  // Updates of a step, where its gradients step themselves.
  virtual int updates() const = 0;
  // At the begin of a step's compute, and at its end.
  virtual void begin_step() = 0;
  virtual void end_step(Optimizer& optimizer) = 0;

  // ---- what is judged and kept ----

  // What is not learned becomes its mean over the replicas. `net` as above; `apart`: workers' models differ and may
  // have no world in common. Collective.
  virtual void average_buffers(Workload& work, DataParallel* net, bool apart) = 0;
  // On the test data; the same on every worker. Collective.
  virtual Evaluation evaluate(Workload& work) = 0;
  // Whether a checkpoint is put together from what several workers hold, so that all of them take part.
  virtual bool keeps_together() const = 0;
  // Tensors of every worker, whole, at the one that keeps them. Collective where checkpoints are kept together.
  virtual NamedTensors whole(const NamedTensors& local) = 0;
  // What workers have of their own of that, each name once.
  virtual NamedTensors gathered(NamedTensors own) = 0;
  // What this worker holds of a whole checkpoint.
  virtual LoadedCheckpoint own_part(const LoadedCheckpoint& checkpoint) const = 0;
  // What of a run that goes on is not as it would have been; empty: nothing.
  virtual std::string resumed_note() const = 0;

  // ---- what is told ----

  // Within a copy of the model, by this worker, besides what replicas exchange.
  virtual std::uint64_t bytes_sent() = 0;
  virtual std::size_t parameter_count() const = 0;  // of the whole model
  virtual std::string describe() const = 0;         // one line for the header; empty: nothing to say
  // What `seconds` of training were spent on: numbers for run.json and lines for the user. Collective.
  struct Report {
    nlohmann::json numbers;
    std::vector<std::string> lines;
  };
  virtual Report report(double seconds) = 0;
};

// `mesh`: where the model of `work` is cut, which can then not be run as a whole any more; null: this worker has all of
// it. Collective over the mesh. All must outlive it.
std::unique_ptr<HeldModel> hold_model(const Config& config, Workload& work, Communicator& world, WorkerGroup& group,
                                      Mesh* mesh);

}  // namespace trireme::train
