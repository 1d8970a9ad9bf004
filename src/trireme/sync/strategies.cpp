#include "trireme/sync/strategies.h"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/find_kind.h"
#include "trireme/base/registry.h"
#include "trireme/sync/strategies/kinds.h"

namespace trireme::sync {

namespace {

Registry<StrategyKind>& registry() {
  static const std::vector<StrategyKind> built_in{
      allreduce(),      ps_bsp(), ps_ssp(), ps_async(),     hogwild(),       local_sgd(),  post_local_sgd(),  easgd(),
      average_at_end(), diloco(), sma(),    gossip_dpsgd(), gossip_adpsgd(), gossip_sgp(), stale_allreduce(),
  };
  static Registry<StrategyKind> all("strategy", built_in);
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
