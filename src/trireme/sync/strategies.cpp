#include "trireme/sync/strategies.h"

#include <fmt/format.h>

#include "trireme/sync/kinds.h"

namespace trireme::sync {

const std::vector<Kind>& strategies() {
  static const std::vector<Kind> kinds{
      allreduce(),      ps_bsp(), ps_ssp(), ps_async(),     hogwild(),       local_sgd(),  post_local_sgd(),  easgd(),
      average_at_end(), diloco(), sma(),    gossip_dpsgd(), gossip_adpsgd(), gossip_sgp(), stale_allreduce(),
  };
  return kinds;
}

Choice Choice::parse(std::string_view text) {
  const auto [name, given] = split_choice(text);
  const Kind& kind = find_kind("strategy", strategies(), name);
  return {&kind, Values(fmt::format("strategy {}", name), kind.settings, given)};
}

std::unique_ptr<Strategy> Choice::make(const Surroundings& around) const {
  auto strategy = kind->make(values, around);
  strategy->set_traits(traits());
  return strategy;
}

Traits Choice::traits() const {
  auto traits = kind->traits;
  if (kind->learners) traits.learners = kind->learners(values);
  return traits;
}

}  // namespace trireme::sync
