#include "trireme/train/checkpoint/server_state.h"

#include <algorithm>
#include <map>

namespace trireme::train {
namespace {

// An optimizer's quantities of a parameter, by their names, which servers use as well.
struct Moments {
  std::map<std::string, torch::Tensor> values;
  torch::Tensor steps;  // undefined where it does not count
};

std::map<std::string, Moments> moments_of(Learner& learner) {
  std::map<std::string, Moments> all;
  for (const auto& [name, tensor] : learner.optimizer->state()) {
    const auto dot = name.rfind('.');
    auto& moments = all[name.substr(0, dot)];
    tensor.scalar_type() == torch::kLong ? (void)(moments.steps = tensor)
                                         : (void)moments.values.emplace(name.substr(dot + 1), tensor);
  }
  return all;
}

// use(what an optimizer has, what servers have) of each quantity of each parameter.
template <typename Use>
void each(sync::Strategy& strategy, Learner& learner, std::map<std::string, Moments>& moments, const Use& use) {
  const auto outline = FlatModel::outline(learner.model());
  for (const auto& kept : strategy.state()) {
    std::size_t at = 0;
    for (const auto& parameter : outline) {
      auto& values = moments[parameter.name].values;
      auto part = kept.values.subspan(at, parameter.count);
      if (const auto mine = values.find(kept.name); mine != values.end()) {
        use(mine->second, torch::from_blob(part.data(), {static_cast<std::int64_t>(part.size())}, torch::kFloat32));
      }
      at += parameter.count;
    }
  }
}

}  // namespace

void to_optimizer(sync::Strategy& strategy, Learner& learner) {
  torch::NoGradGuard no_grad;
  auto moments = moments_of(learner);
  each(strategy, learner, moments,
       [](torch::Tensor& mine, const torch::Tensor& theirs) { mine.copy_(theirs.view_as(mine)); });
  const auto numbers = strategy.numbers();
  for (auto& [name, one] : moments) {
    if (one.steps.defined() && !numbers.empty()) one.steps.fill_(static_cast<std::int64_t>(numbers[0]));
  }
}

void from_optimizer(Learner& learner, sync::Strategy& strategy, std::int64_t steps) {
  torch::NoGradGuard no_grad;
  auto moments = moments_of(learner);
  each(strategy, learner, moments,
       [](const torch::Tensor& mine, torch::Tensor theirs) { theirs.copy_(mine.reshape({-1})); });
  for (const auto& [name, one] : moments) {
    if (one.steps.defined()) steps = std::max(steps, one.steps.item<std::int64_t>());
  }
  strategy.set_numbers(std::array{static_cast<double>(steps)});
}

}  // namespace trireme::train
