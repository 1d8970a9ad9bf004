#include "trireme/train/optimizers/torch_optimizer.h"

#include "trireme/base/error.h"
#include "trireme/optim/optimizers.h"

namespace trireme::train {
namespace {

using torch::optim::OptimizerParamGroup;

std::optional<ps::UpdateSpec> update_of(const torch::optim::SGDOptions& options) {
  if (options.dampening() != 0) return std::nullopt;
  return ps::UpdateSpec{.name = options.momentum() > 0 ? "momentum" : std::string(optim::kSgd.name),
                        .momentum = options.momentum(),
                        .weight_decay = options.weight_decay(),
                        .nesterov = options.nesterov()};
}

template <typename AdamOptions>
std::optional<ps::UpdateSpec> update_of(const AdamOptions& options, std::string_view name) {
  if (options.amsgrad()) return std::nullopt;
  return ps::UpdateSpec{.name = std::string(name),
                        .weight_decay = options.weight_decay(),
                        .beta1 = std::get<0>(options.betas()),
                        .beta2 = std::get<1>(options.betas()),
                        .epsilon = options.eps()};
}

// Of all groups, where they are alike in everything.
template <typename Options, typename Of>
std::optional<ps::UpdateSpec> common(std::vector<OptimizerParamGroup>& groups, const Of& of) {
  const auto& first = static_cast<const Options&>(groups.front().options());
  for (const auto& group : groups) {
    const auto& options = static_cast<const Options&>(group.options());
    if (of(options) != of(first) || options.lr() != first.lr()) return std::nullopt;
  }
  return of(first);
}

}  // namespace

TorchStepping stepping_of(torch::optim::Optimizer& optimizer) {
  auto& groups = optimizer.param_groups();
  if (groups.empty()) throw ConfigError("synchronize: the optimizer has no parameters");
  if (dynamic_cast<torch::optim::SGD*>(&optimizer)) {
    const auto& first = static_cast<const torch::optim::SGDOptions&>(groups.front().options());
    return {"SGD", true, first.momentum(), first.nesterov(),
            common<torch::optim::SGDOptions>(groups, [](const auto& options) { return update_of(options); })};
  }
  if (dynamic_cast<torch::optim::Adam*>(&optimizer)) {
    return {.name = "Adam", .update = common<torch::optim::AdamOptions>(groups, [](const auto& options) {
                              return update_of(options, optim::kAdam.name);
                            })};
  }
  if (dynamic_cast<torch::optim::AdamW*>(&optimizer)) {
    return {.name = "AdamW", .update = common<torch::optim::AdamWOptions>(groups, [](const auto& options) {
                               return update_of(options, optim::kAdamW.name);
                             })};
  }
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer)) {
    throw ConfigError("synchronize: a step of LBFGS calls the loss again; choose another optimizer");
  }
  return {.name = "this optimizer"};
}

double rate_of(torch::optim::Optimizer& optimizer) { return optimizer.param_groups().front().options().get_lr(); }

void scale_rates(torch::optim::Optimizer& optimizer, double factor) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * factor);
}

void set_momentum(torch::optim::Optimizer& optimizer, double momentum, bool nesterov) {
  for (auto& group : optimizer.param_groups()) {
    static_cast<torch::optim::SGDOptions&>(group.options()).momentum(momentum).nesterov(nesterov);
  }
}

}  // namespace trireme::train
