#include "trireme/parallel/tensor/tensor_parallel.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/parallel/tensor/cross_entropy.h"
#include "trireme/parallel/tensor/layer_splitter.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/repartition.h"
#include "trireme/parallel/tensor/tensor_collectives.h"
#include "trireme/parallel/tensor/tensor_rules.h"

namespace trireme {

using torch::Tensor;

TensorParallel::TensorParallel(torch::nn::Module& model, const Forward& forward, Communicator& group,
                               std::string_view rules, const Tensor& example)
    : group_(&group) {
  const auto kinds = parallel::TensorRules(rules).kinds_in(model);
  for (const auto& item : model.named_parameters()) parameters_.emplace_back(item.key(), item.value());
  if (group.size() == 1) return;
  parallel::LayerSplitter fit(model, group, kinds);
  const auto placement = fit.run(forward, example);
  cuts_ = fit.cuts();
  partial_ = fit.before_batch();
  report_ = fit.report();
  gathers_batch_ = fit.gathers_batch();
  score_dim_ = placement.dim;
  score_sizes_ = placement.sizes;
}

Tensor TensorParallel::all_targets(const Tensor& target) const {
  if (!gathers_batch_) return target;
  return parallel::gather_batch(target, parallel::batch_sizes(target.size(0), *group_), *group_);
}

Tensor TensorParallel::loss(const Tensor& scores, const Tensor& target, double smoothing) const {
  const auto targets = all_targets(target);
  if (score_dim_ != scores.dim() - 1) return parallel::cross_entropy(whole(scores), targets, {}, *group_, smoothing);
  return parallel::cross_entropy(scores, targets, score_sizes_, *group_, smoothing);
}

std::int64_t TensorParallel::correct(const Tensor& scores, const Tensor& target) const {
  if (score_dim_ != scores.dim() - 1) return parallel::correct(whole(scores), all_targets(target), {}, *group_);
  return parallel::correct(scores, all_targets(target), score_sizes_, *group_);
}

Tensor TensorParallel::whole(const Tensor& scores) const {
  return score_sizes_.empty() ? scores : parallel::gather(scores, score_dim_, score_sizes_, *group_);
}

void TensorParallel::sum_partial_gradients() {
  torch::NoGradGuard no_grad;
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) {
    if (std::ranges::find(partial_, name) == partial_.end()) continue;
    if (!parameter.grad().defined()) {
      throw ConfigError(fmt::format("{} has no gradient to sum over the workers", name));
    }
    gradients.push_back(parameter.grad());
  }
  if (gradients.empty()) return;
  std::vector<Tensor> flat;
  for (const auto& gradient : gradients) flat.push_back(gradient.flatten());
  auto sum = parallel::all_reduced(torch::cat(flat), *group_);
  std::int64_t begin = 0;
  for (auto& gradient : gradients) {
    gradient.copy_(sum.narrow(0, begin, gradient.numel()).view_as(gradient));
    begin += gradient.numel();
  }
}

double TensorParallel::squared_gradient_norm() const {
  std::vector<double> squares(2, 0);  // of what is cut, of what is whole
  for (const auto& [name, parameter] : parameters_) {
    if (!parameter.grad().defined()) continue;
    squares[cuts_.contains(name) ? 0 : 1] += parameter.grad().to(torch::kFloat64).square().sum().item<double>();
  }
  if (group_->size() > 1) group_->all_reduce(View(squares.data(), 1, DType::f64));
  return squares[0] + squares[1];
}

}  // namespace trireme
