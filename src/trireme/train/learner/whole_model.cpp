#include "trireme/train/learner/whole_model.h"

#include <vector>

#include "trireme/train/learner/learner.h"

namespace trireme::train {

std::unique_ptr<Gradients> WholeModel::gradients(const Config& config, Workload& work, DataParallel* net, int stream,
                                                 Scale scale) {
  return std::make_unique<WholeGradients>(config, work, *net, world_, stream, scale);
}

void WholeModel::average_buffers(Workload& work, DataParallel* net, bool apart) {
  apart ? train::average_buffers(*work.model, group_) : net->average_buffers();
}

// Shared out over the world; where workers have no world in common, the one that writes does it all.
Evaluation WholeModel::evaluate(Workload& work) {
  const auto own = [&] {
    return train::evaluate(*work.model, work_.objective, *work_.data.test, work_.device, &world_);
  };
  if (world_.size() == group_.size()) return own();
  std::vector<double> sums;
  for (int dead = 0; dead < group_.size() && (sums.empty() || sums[1] == 0); ++dead) {
    auto found =
        group_.writer() == group_.rank() ? own() : Evaluation{};  // it may die over it: then the next one does it
    sums = {found.loss, static_cast<double>(found.samples)};
    found.metrics.resize(work_.objective.metrics.size());
    sums.insert(sums.end(), found.metrics.begin(), found.metrics.end());
    group_.sum(sums);
  }
  return {sums[0], {sums.begin() + 2, sums.end()}, static_cast<std::int64_t>(sums[1])};
}

std::size_t WholeModel::parameter_count() const { return train::parameter_count(*work_.model); }

}  // namespace trireme::train
