#include "trireme/train/optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/error.h"
#include "trireme/base/registry.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/optim/optimizers.h"
#include "trireme/train/optimizers/per_parameter.h"

namespace trireme::train {
namespace {

const OptimizerEntry kBuiltIn[] = {
    {optim::kSgd, make_sgd},   {optim::kAdam, make_adam}, {optim::kAdamW, make_adamw},
    {optim::kLars, make_lars}, {optim::kLamb, make_lamb},
};

std::vector<OptimizerEntry>& entries() {
  static std::vector<OptimizerEntry> all(std::begin(kBuiltIn), std::end(kBuiltIn));
  return all;
}

void check(const optim::OptimizerKind& kind, const OptimizerOptions& options) {
  const auto name = kind.name;
  auto require = [&](bool holds, std::string_view what, double value) {
    if (!holds) throw ConfigError(fmt::format("optimizer {}: {}, not {}", name, what, value));
  };
  auto share = [](double value) { return value >= 0 && value < 1; };
  require(share(options.momentum), "momentum must be from 0 to below 1", options.momentum);
  require(options.weight_decay >= 0, "weight decay must be at least 0", options.weight_decay);
  require(share(options.beta1), "beta1 must be from 0 to below 1", options.beta1);
  require(share(options.beta2), "beta2 must be from 0 to below 1", options.beta2);
  require(options.epsilon >= 0, "epsilon must be at least 0", options.epsilon);
  require(options.trust > 0, "trust must be above 0", options.trust);
  if (options.nesterov && !kind.linear) {
    throw ConfigError(fmt::format("optimizer {}: nesterov is for sgd alone", name));
  }
}

}  // namespace

std::span<const OptimizerEntry> optimizers() { return entries(); }
void add_optimizer(OptimizerEntry entry) {
  optim::add_optimizer(entry.kind);
  entries().push_back(std::move(entry));
}

const OptimizerEntry& find_optimizer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptimizerEntry& entry : optimizers()) {
    if (entry.kind.name == name) return entry;
    names.push_back(entry.kind.name);
  }
  throw ConfigError(fmt::format("no optimizer is called {}; {}there are {}", clipped(name), did_you_mean(name, names),
                                fmt::join(names, ", ")));
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const NamedTensors& parameters,
                                          const OptimizerOptions& options) {
  const auto& entry = find_optimizer(name);
  check(entry.kind, options);
  return entry.make(parameters, options);
}

}  // namespace trireme::train
