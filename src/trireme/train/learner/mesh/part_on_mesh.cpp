#include "trireme/train/learner/mesh/part_on_mesh.h"

#include <fmt/format.h>

#include "trireme/train/checkpoint/worker_state.h"
#include "trireme/train/learner/learner.h"
#include "trireme/train/learner/mesh/mesh_gradients.h"
#include "trireme/train/learner/whole_model.h"

namespace trireme::train {

ReplicaPart PartOnMesh::replica_part() const {
  const bool cut = !model_.gathers_batch();
  return {group_.rank(), group_.size(), cut ? mesh_.place().tensor : 0, cut ? mesh_.shape().tensor : 1};
}

std::shared_ptr<torch::nn::Module> PartOnMesh::exchanged() {
  return model_.gathers_batch() ? nn::module_of(model_.exchanged(), {}) : nullptr;
}

std::unique_ptr<Gradients> PartOnMesh::gradients(const Config& config, Workload& work, DataParallel* net, int,
                                                 Scale scale) {
  return std::make_unique<MeshGradients>(config, work, model_, net, scale);
}

// An exchange of some of the parameters knows nothing of the buffers.
void PartOnMesh::average_buffers(Workload&, DataParallel* net, bool apart) {
  if (!apart && net != nullptr && !model_.gathers_batch()) return net->average_buffers();
  train::average_buffers(model_.part(), group_, &mesh_.data());
}

NamedTensors PartOnMesh::gathered(NamedTensors own) { return gather_tensors(mesh_.world(), std::move(own)); }

std::string PartOnMesh::resumed_note() const {
  if (model_.pipeline().synchronous()) return {};
  return fmt::format(
      "{}: what was under way when the run was stopped was ended first; steps "
      "differ from those of a run that was not",
      config_.pipeline);
}

HeldModel::Report PartOnMesh::report(double seconds) {
  auto report = model_.report(seconds);
  return {std::move(report.numbers), std::move(report.lines)};
}

std::unique_ptr<HeldModel> hold_model(const Config& config, Workload& work, Communicator& world, WorkerGroup& group,
                                      Mesh* mesh) {
  if (mesh != nullptr) return std::make_unique<PartOnMesh>(config, work, group, *mesh);
  return std::make_unique<WholeModel>(work, world, group);
}

}  // namespace trireme::train
