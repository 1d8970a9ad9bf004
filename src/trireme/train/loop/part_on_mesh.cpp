#include "trireme/train/loop/part_on_mesh.h"

#include <fmt/format.h>

#include "trireme/train/learner.h"
#include "trireme/train/loop/whole_model.h"
#include "trireme/train/mesh_gradients.h"
#include "trireme/train/own_state.h"

namespace trireme::train {

Station PartOnMesh::station() const {
  const bool cut = !body_.gathers_batch();
  return {crew_.rank(), crew_.size(), cut ? mesh_.place().tensor : 0, cut ? mesh_.shape().tensor : 1};
}

std::shared_ptr<torch::nn::Module> PartOnMesh::exchanged() {
  return body_.gathers_batch() ? nn::module_of(body_.exchanged(), {}) : nullptr;
}

std::unique_ptr<Gradients> PartOnMesh::gradients(const Config& config, Workload& work, DataParallel* net, int,
                                                 Scale scale) {
  return std::make_unique<MeshGradients>(config, work, body_, net, scale);
}

// An exchange of some of the parameters knows nothing of the buffers.
void PartOnMesh::average_buffers(Workload&, DataParallel* net, bool apart) {
  if (!apart && net != nullptr && !body_.gathers_batch()) return net->average_buffers();
  train::average_buffers(body_.part(), crew_, &mesh_.data());
}

NamedTensors PartOnMesh::gathered(NamedTensors own) { return gather_tensors(mesh_.world(), std::move(own)); }

std::string PartOnMesh::resumed_note() const {
  if (body_.pipeline().synchronous()) return {};
  return fmt::format(
      "{}: what was under way when the run was stopped was ended first; steps "
      "differ from those of a run that was not",
      config_.pipeline);
}

HeldModel::Report PartOnMesh::report(double seconds) {
  auto report = body_.report(seconds);
  return {std::move(report.numbers), std::move(report.lines)};
}

std::unique_ptr<HeldModel> hold_model(const Config& config, Workload& work, Communicator& world, Crew& crew,
                                      Mesh* mesh) {
  if (mesh != nullptr) return std::make_unique<PartOnMesh>(config, work, crew, *mesh);
  return std::make_unique<WholeModel>(work, world, crew);
}

}  // namespace trireme::train
