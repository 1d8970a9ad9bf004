// A worker that has all of the model.
#pragma once
#include "trireme/train/learner/held_model.h"

namespace trireme::train {

class WholeModel : public HeldModel {
 public:
  WholeModel(Workload& work, Communicator& world, WorkerGroup& group) : work_(work), world_(world), group_(group) {}

  Communicator& replicas() override { return world_; }
  WorkerGroup& group() override { return group_; }
  std::string_view group_word() const override { return "workers"; }
  ReplicaPart replica_part() const override { return {group_.rank(), group_.size(), 0, 1}; }

  torch::nn::Module& module(Workload& work) override { return *work.model; }
  std::shared_ptr<torch::nn::Module> exchanged() override { return nullptr; }
  parallel::Sharded* shards() override { return nullptr; }
  std::unique_ptr<Gradients> gradients(const Config& config, Workload& work, DataParallel* net, int stream,
                                       Scale scale) override;
  std::function<void(const std::string&, std::span<double>)> over_parts() override { return nullptr; }
  int updates() const override { return 1; }
  void begin_step() override {}
  void end_step(Optimizer&) override {}

  void average_buffers(Workload& work, DataParallel* net, bool apart) override;
  Evaluation evaluate(Workload& work) override;
  bool keeps_together() const override { return false; }
  NamedTensors whole(const NamedTensors& local) override { return local; }
  NamedTensors gathered(NamedTensors own) override { return own; }
  LoadedCheckpoint own_part(const LoadedCheckpoint& checkpoint) const override { return checkpoint; }
  std::string resumed_note() const override { return {}; }

  std::uint64_t bytes_sent() override { return 0; }
  std::size_t parameter_count() const override;
  std::string describe() const override { return {}; }
  Report report(double) override { return {}; }

 private:
  Workload& work_;
  Communicator& world_;
  WorkerGroup& group_;
};

}  // namespace trireme::train
