#include "trireme/sync/strategies.h"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/find_kind.h"
#include "trireme/base/registry.h"
#include "trireme/sync/strategies/kinds.h"

namespace trireme::sync {

namespace {

Registry<StrategyKind>& registry() {
  static Registry<StrategyKind> all("strategy", {
#define STRATEGY(row) row(),
#include "trireme/sync/strategies/members.inc"
#undef STRATEGY
                                                });
  return all;
}

}  // namespace

const std::vector<StrategyKind>& strategies() { return registry().all(); }
void add_strategy(StrategyKind kind) { registry().add(std::move(kind)); }

Choice Choice::parse(std::string_view text) {
  const auto [name, given] = split_choice(text);
  const StrategyKind& kind = find_kind("strategy", strategies(), name);
  return {&kind, Values(fmt::format("strategy {}", name), kind.settings, given)};
}

std::unique_ptr<Strategy> Choice::make(const Context& context) const {
  auto strategy = kind->make(values, context);
  strategy->set_traits(traits());
  return strategy;
}

std::int64_t Context::share_of_steps(double share, std::string_view setting) const {
  if (share > 0 && total_steps == 0) {
    throw ConfigError(
        fmt::format("{} is a share of all steps: say how many a worker takes (total_steps), or set it to 0", setting));
  }
  return std::llround(share * static_cast<double>(total_steps));
}

Traits Choice::traits() const {
  auto traits = kind->traits;
  if (kind->learners) traits.learners = kind->learners(values);
  return traits;
}

}  // namespace trireme::sync
