// A worker that has a part of the model, on a mesh.
#pragma once
#include "trireme/train/body.h"
#include "trireme/train/loop/held_model.h"
#include "trireme/train/replica_crew.h"

namespace trireme::train {

class PartOnMesh : public HeldModel {
 public:
  // Collective over the mesh. Throws ConfigError where the model cannot be cut like this, saying what is possible.
  PartOnMesh(const Config& config, Workload& work, Crew& workers, Mesh& mesh)
      : config_(config), work_(work), mesh_(mesh), crew_(mesh, workers), body_(config, work, mesh) {}

  Communicator& replicas() override { return mesh_.data(); }
  Crew& crew() override { return crew_; }
  std::string_view crew_word() const override { return "replicas"; }
  Station station() const override;

  torch::nn::Module& module(Workload&) override { return body_.part(); }
  std::shared_ptr<torch::nn::Module> exchanged() override;
  parallel::Sharded* shards() override { return body_.sharded(); }
  std::unique_ptr<Gradients> gradients(const Config& config, Workload& work, DataParallel* net, int stream,
                                       Scale scale) override;
  std::function<void(const std::string&, std::span<double>)> over_parts() override { return body_.over_parts(); }
  int updates() const override { return body_.pipeline().options().micro_batches; }
  void begin_step() override { body_.begin_step(); }
  void end_step(Optimizer& optimizer) override { body_.note_memory(optimizer); }

  void average_buffers(Workload& work, DataParallel* net, bool apart) override;
  Evaluation evaluate(Workload&) override { return body_.evaluate(*work_.data.test); }
  bool keeps_together() const override { return true; }
  NamedTensors whole(const NamedTensors& local) override { return body_.whole(local); }
  NamedTensors gathered(NamedTensors own) override;
  LoadedCheckpoint own_part(const LoadedCheckpoint& checkpoint) const override { return body_.own_part(checkpoint); }
  std::string resumed_note() const override;

  std::uint64_t bytes_sent() override { return body_.bytes_sent(); }
  std::size_t parameter_count() const override { return body_.parameter_count(); }
  std::string describe() const override { return body_.describe(); }
  Report report(double seconds) override;

 private:
  const Config& config_;
  Workload& work_;
  Mesh& mesh_;
  ReplicaCrew crew_;
  Body body_;
};

}  // namespace trireme::train
