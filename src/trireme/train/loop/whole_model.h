// A worker that has all of the model.
#pragma once
#include "trireme/train/loop/held_model.h"

namespace trireme::train {

class WholeModel : public HeldModel {
 public:
  WholeModel(Workload& work, Communicator& world, Crew& crew) : work_(work), world_(world), crew_(crew) {}

  Communicator& replicas() override { return world_; }
  Crew& crew() override { return crew_; }
  std::string_view crew_word() const override { return "workers"; }
  Station station() const override { return {crew_.rank(), crew_.size(), 0, 1}; }

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
  Crew& crew_;
};

}  // namespace trireme::train
