// A worker that has a part of the model, on a mesh.
#pragma once
#include "trireme/train/group/replica_group.h"
#include "trireme/train/learner/held_model.h"
#include "trireme/train/learner/mesh/mesh_model.h"

namespace trireme::train {

class PartOnMesh : public HeldModel {
 public:
  // Collective over the mesh. Throws ConfigError where the model cannot be cut like this, saying what is possible.
  PartOnMesh(const Config& config, Workload& work, WorkerGroup& workers, Mesh& mesh)
      : config_(config), work_(work), mesh_(mesh), group_(mesh, workers), model_(config, work, mesh) {}

  Communicator& replicas() override { return mesh_.data(); }
  WorkerGroup& group() override { return group_; }
  std::string_view group_word() const override { return "replicas"; }
  ReplicaPart replica_part() const override;

  torch::nn::Module& module(Workload&) override { return model_.part(); }
  std::shared_ptr<torch::nn::Module> exchanged() override;
  parallel::Sharded* shards() override { return model_.sharded(); }
  std::unique_ptr<Gradients> gradients(const Config& config, Workload& work, DataParallel* net, int stream,
                                       Scale scale) override;
  std::function<void(const std::string&, std::span<double>)> over_parts() override { return model_.over_parts(); }
  int updates() const override { return model_.pipeline().options().micro_batches; }
  void begin_step() override { model_.begin_step(); }
  void end_step(Optimizer& optimizer) override { model_.note_memory(optimizer); }

  void average_buffers(Workload& work, DataParallel* net, bool apart) override;
  Evaluation evaluate(Workload&) override { return model_.evaluate(*work_.data.test); }
  bool keeps_together() const override { return true; }
  NamedTensors whole(const NamedTensors& local) override { return model_.whole(local); }
  NamedTensors gathered(NamedTensors own) override;
  LoadedCheckpoint own_part(const LoadedCheckpoint& checkpoint) const override { return model_.own_part(checkpoint); }
  std::string resumed_note() const override;

  std::uint64_t bytes_sent() override { return model_.bytes_sent(); }
  std::size_t parameter_count() const override { return model_.parameter_count(); }
  std::string describe() const override { return model_.describe(); }
  Report report(double seconds) override;

 private:
  const Config& config_;
  Workload& work_;
  Mesh& mesh_;
  ReplicaGroup group_;
  MeshModel model_;
};

}  // namespace trireme::train
