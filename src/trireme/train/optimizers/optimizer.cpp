#include "trireme/train/optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/optim/optimizers.h"
#include "trireme/train/optimizers/flat_stepper.h"

namespace trireme::train {
namespace {

// Those that are made of tensors alone.
auto& makers() {
  static std::map<std::string, decltype(OptimizerEntry::make), std::less<>> all;
  return all;
}

}  // namespace

void add_optimizer(OptimizerEntry entry) {
  if (!entry.make && !entry.kind.make) {
    throw ConfigError(fmt::format("optimizer {}: nothing makes it; set `make`, or `kind.make`", entry.kind.name));
  }
  optim::add_optimizer(entry.kind);
  if (entry.make) makers()[std::string(entry.kind.name)] = std::move(entry.make);
}

const optim::OptimizerKind& find_optimizer(std::string_view name) {
  if (const auto* kind = optim::find_optimizer(name)) return *kind;
  std::vector<std::string_view> names;
  for (const auto& kind : optim::optimizers()) names.push_back(kind.name);
  throw ConfigError(fmt::format("no optimizer is called {}; {}there are {}", clipped(name), did_you_mean(name, names),
                                fmt::join(names, ", ")));
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const NamedTensors& parameters,
                                          const OptimizerOptions& options) {
  const auto& kind = find_optimizer(name);
  if (const auto own = makers().find(name); own != makers().end()) {
    optim::check(kind, options);
    return own->second(parameters, options);
  }
  return std::make_unique<FlatStepper>(kind, parameters, options);
}

}  // namespace trireme::train
