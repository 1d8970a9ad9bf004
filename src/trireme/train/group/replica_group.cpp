#include "trireme/train/group/replica_group.h"

namespace trireme::train {

ReplicaGroup::ReplicaGroup(Mesh& mesh, WorkerGroup& workers)
    : mesh_(mesh), workers_(workers), replica_(mesh.world().split(mesh.place().data)) {}

void ReplicaGroup::sum(std::span<double> numbers) {
  workers_.sum(numbers);
  const double each = mesh_.shape().pipe * mesh_.shape().tensor;
  for (double& number : numbers) number /= each;
}

std::optional<std::int64_t> ReplicaGroup::take(const Part& part) {
  std::vector<std::int64_t> taken{-1};
  if (replica_->rank() == 0) taken[0] = workers_.take(part).value_or(-1);
  replica_->broadcast(taken);
  return taken[0] >= 0 ? std::optional(taken[0]) : std::nullopt;
}

}  // namespace trireme::train
