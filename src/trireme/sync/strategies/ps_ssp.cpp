// Parameter server, stale synchronous (Ho et al., 2013): at clock c a worker sees everyone's updates up to c − s − 1,
// its own up to c − 1, and of the others' up to c + s − 1 those that have arrived; who is more than s ahead waits.
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/server_worker.h"

namespace trireme::sync {

namespace {

ps::Consistency consistency_of(const Values& values) {
  return ps::Consistency::ssp(static_cast<std::uint64_t>(values.integer("s")));
}

}  // namespace

StrategyKind ps_ssp() {
  auto traits = kServerTraits;
  traits.repeatable = false;
  return {.name = "ps-ssp",
          .summary = "parameter server; no worker is more than s steps ahead of another",
          .settings = {{"s", "3", "steps a worker may be ahead", whole_number(0, kMany)}},
          .traits = traits,
          .needs_servers = true,
          .compresses = StrategyKind::Compresses::gradients,
          .proven = StrategyKind::Proven::staleness,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<ServerWorker>(context, consistency_of(values));
          },
          .exchange_plan = [](const Values& values,
                              const ExchangePlanAt&) { return server_course(consistency_of(values)); },
          .exact = {{"s=0"}}};
}

}  // namespace trireme::sync
