#include "trireme/optim/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/registry.h"
#include "trireme/optim/kinds.h"

namespace trireme::optim {
namespace {

Registry<OptimizerKind>& registry() {
  static Registry<OptimizerKind> all("optimizer", {kSgd, kAdam, kAdamW, kRmsProp, kAdagrad, kLars, kLamb});
  return all;
}

}  // namespace

std::span<const OptimizerKind> optimizers() { return registry().all(); }
void add_optimizer(const OptimizerKind& kind) { registry().add(kind); }

const OptimizerKind* find_optimizer(std::string_view name) {
  const auto found = std::ranges::find(optimizers(), name, &OptimizerKind::name);
  return found == optimizers().end() ? nullptr : &*found;
}

std::string names_with(bool OptimizerKind::*trait) {
  std::vector<std::string_view> names;
  for (const auto& one : optimizers()) {
    if (one.*trait) names.push_back(one.name);
  }
  return listed(names);
}

void check(const OptimizerKind& kind, const Options& options) {
  auto require = [&](bool holds, std::string_view what, double value) {
    if (!holds) throw ConfigError(fmt::format("optimizer {}: {}, not {}", kind.name, what, value));
  };
  auto share = [](double value) { return value >= 0 && value < 1; };
  require(share(options.momentum), "momentum must be from 0 to below 1", options.momentum);
  require(share(options.dampening), "dampening must be from 0 to below 1", options.dampening);
  require(options.weight_decay >= 0, "weight decay must be at least 0", options.weight_decay);
  require(share(options.beta1), "beta1 must be from 0 to below 1", options.beta1);
  require(share(options.beta2), "beta2 must be from 0 to below 1", options.beta2);
  require(options.epsilon >= 0, "epsilon must be at least 0", options.epsilon);
  require(share(options.alpha), "alpha must be from 0 to below 1", options.alpha);
  require(options.lr_decay >= 0, "lr decay must be at least 0", options.lr_decay);
  require(options.initial_accumulator >= 0, "the initial accumulator must be at least 0", options.initial_accumulator);
  require(options.trust > 0, "trust must be above 0", options.trust);
  if (options.nesterov && !kind.linear) {
    throw ConfigError(fmt::format("optimizer {}: nesterov is for sgd alone", kind.name));
  }
}

MadeRule make_rule(const OptimizerKind& kind, const Options& options) {
  check(kind, options);
  return kind.make(options);
}

}  // namespace trireme::optim
