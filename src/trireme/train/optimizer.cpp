#include "trireme/train/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/error.h"
#include "trireme/base/nearest.h"
#include "trireme/base/registry.h"
#include "trireme/base/text.h"
#include "trireme/train/optimizers/per_parameter.h"

namespace trireme::train {
namespace {

const OptimizerEntry kBuiltIn[] = {
    {"sgd", "gradient descent with momentum or Nesterov's momentum", make_sgd},
    {"adam", "steps scaled by running means of the gradient and its square", make_adam},
    {"adamw", "Adam with weight decay apart from the gradient", make_adamw},
    {"lars", "momentum with a rate per layer, for convolutional networks in large batches", make_lars},
    {"lamb", "Adam with a rate per layer, for transformers in large batches", make_lamb},
};

Registry<OptimizerEntry>& registry() {
  static Registry<OptimizerEntry> all("optimizer", {std::begin(kBuiltIn), std::end(kBuiltIn)});
  return all;
}

void check(std::string_view name, const OptimizerOptions& options) {
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
  if (options.nesterov && name != "sgd") {
    throw ConfigError(fmt::format("optimizer {}: nesterov is for sgd alone", name));
  }
}

}  // namespace

std::span<const OptimizerEntry> optimizers() { return registry().all(); }
void add_optimizer(OptimizerEntry entry) { registry().add(std::move(entry)); }

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const NamedTensors& parameters,
                                          const OptimizerOptions& options) {
  std::vector<std::string_view> names;
  for (const OptimizerEntry& entry : optimizers()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    check(name, options);
    return entry.make(parameters, options);
  }
  throw ConfigError(fmt::format("no optimizer is called {}; {}there are {}", clipped(name), did_you_mean(name, names),
                                fmt::join(names, ", ")));
}

}  // namespace trireme::train
