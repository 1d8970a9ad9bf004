#include "trireme/train/optimizers/torch_optimizer.h"

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/optim/kinds.h"

namespace trireme::train {
namespace {

using torch::optim::OptimizerParamGroup;

optim::Options options_of(const torch::optim::SGDOptions& options) {
  return {.weight_decay = options.weight_decay(),
          .momentum = options.momentum(),
          .dampening = options.momentum() > 0 ? options.dampening() : 0,
          .nesterov = options.nesterov()};
}

template <typename AdamLike>
optim::Options options_of_adam(const AdamLike& options) {
  return {.weight_decay = options.weight_decay(),
          .beta1 = std::get<0>(options.betas()),
          .beta2 = std::get<1>(options.betas()),
          .epsilon = options.eps(),
          .amsgrad = options.amsgrad()};
}
optim::Options options_of(const torch::optim::AdamOptions& options) { return options_of_adam(options); }
optim::Options options_of(const torch::optim::AdamWOptions& options) { return options_of_adam(options); }

optim::Options options_of(const torch::optim::RMSpropOptions& options) {
  return {.weight_decay = options.weight_decay(),
          .momentum = options.momentum(),
          .epsilon = options.eps(),
          .alpha = options.alpha(),
          .centered = options.centered()};
}

optim::Options options_of(const torch::optim::AdagradOptions& options) {
  return {.weight_decay = options.weight_decay(),
          .epsilon = options.eps(),
          .lr_decay = options.lr_decay(),
          .initial_accumulator = options.initial_accumulator_value()};
}

// Where `optimizer` is of this class.
template <typename Class, typename ClassOptions>
std::optional<TorchStepping> as(torch::optim::Optimizer& optimizer, const char* name,
                                const optim::OptimizerKind& kind) {
  if (!dynamic_cast<Class*>(&optimizer)) return std::nullopt;
  TorchStepping stepping{.name = name, .kind = &kind};
  const auto& groups = optimizer.param_groups();
  auto of = [](const OptimizerParamGroup& group) { return static_cast<const ClassOptions&>(group.options()); };
  const auto first = of(groups.front());
  stepping.options = options_of(first);
  stepping.groups_differ = std::ranges::any_of(groups, [&](const OptimizerParamGroup& group) {
    return options_of(of(group)) != stepping.options || of(group).lr() != first.lr();
  });
  return stepping;
}

}  // namespace

std::optional<ps::UpdateSpec> TorchStepping::update() const {
  if (!kind || groups_differ) return std::nullopt;
  return ps::UpdateSpec{std::string(kind->name), options};
}

TorchStepping stepping_of(torch::optim::Optimizer& optimizer) {
  if (optimizer.param_groups().empty()) throw ConfigError("synchronize: the optimizer has no parameters");
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer)) {
    throw ConfigError("synchronize: a step of LBFGS calls the loss again; choose another optimizer");
  }
  if (auto found = as<torch::optim::SGD, torch::optim::SGDOptions>(optimizer, "SGD", optim::kSgd)) return *found;
  if (auto found = as<torch::optim::Adam, torch::optim::AdamOptions>(optimizer, "Adam", optim::kAdam)) return *found;
  if (auto found = as<torch::optim::AdamW, torch::optim::AdamWOptions>(optimizer, "AdamW", optim::kAdamW))
    return *found;
  if (auto found = as<torch::optim::RMSprop, torch::optim::RMSpropOptions>(optimizer, "RMSprop", optim::kRmsProp))
    return *found;
  if (auto found = as<torch::optim::Adagrad, torch::optim::AdagradOptions>(optimizer, "Adagrad", optim::kAdagrad))
    return *found;
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
