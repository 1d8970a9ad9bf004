// The replicas of a model on a mesh as a group: the workers of one replica speak as one.
#pragma once
#include <optional>

#include "trireme/parallel/mesh.h"
#include "trireme/train/group/worker_group.h"

namespace trireme::train {

class ReplicaGroup : public WorkerGroup {
 public:
  // `workers` is of all workers. Collective over the mesh.
  ReplicaGroup(Mesh& mesh, WorkerGroup& workers);

  int rank() const override { return mesh_.place().data; }
  int size() const override { return mesh_.shape().data; }
  // Of what every worker of a replica says alike; the mean over them where they do not.
  void sum(std::span<double> numbers) override;
  void start_giving(const Part& part) override { workers_.start_giving(part); }
  // The first worker of a replica takes for all of it.
  std::optional<std::int64_t> take(const Part& part) override;
  void stop_giving() override { workers_.stop_giving(); }

 private:
  Mesh& mesh_;
  WorkerGroup& workers_;
  std::optional<Communicator> replica_;  // of its own: another thread takes
};

}  // namespace trireme::train
