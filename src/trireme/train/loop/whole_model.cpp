#include "trireme/train/loop/whole_model.h"

#include <array>

#include "trireme/train/learner.h"

namespace trireme::train {

std::unique_ptr<Gradients> WholeModel::gradients(const Config& config, Workload& work, DataParallel* net, int stream,
                                                 Scale scale) {
  return std::make_unique<WholeGradients>(config, work, *net, world_, stream, scale);
}

void WholeModel::average_buffers(Workload& work, DataParallel* net, bool apart) {
  apart ? train::average_buffers(*work.model, crew_) : net->average_buffers();
}

// Shared out over the world; where workers have no world in common, the first one does it all.
Evaluation WholeModel::evaluate(Workload& work) {
  const bool one_world = world_.size() == crew_.size();
  Evaluation found;
  if (one_world || crew_.rank() == 0) {
    found = train::evaluate(*work.model, *work_.data.test, work_.device, &world_);
  }
  if (one_world) return found;
  std::array sums{found.loss, found.accuracy, static_cast<double>(found.samples)};
  crew_.sum(sums);
  return {sums[0], sums[1], static_cast<std::int64_t>(sums[2])};
}

std::size_t WholeModel::parameter_count() const { return train::parameter_count(*work_.model); }

}  // namespace trireme::train
