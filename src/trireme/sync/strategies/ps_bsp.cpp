// Parameter server, bulk synchronous: a round is one update by the mean of all workers' gradients, and nobody sees a
// part of it:  w_{t+1} = update(w_t, (1/N) Σ_i g_i(w_t)).
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/server_worker.h"

namespace trireme::sync {

StrategyKind ps_bsp() {
  return {.name = "ps-bsp",
          .summary = "parameter server; all workers wait for each other, every step",
          .settings = {},
          .traits = kServerTraits,
          .needs_servers = true,
          .compresses = StrategyKind::Compresses::gradients,
          .proven = StrategyKind::Proven::speedup,
          .make = [](const Values&, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<ServerWorker>(context, ps::Consistency::bsp());
          },
          .exchange_plan = [](const Values&, const ExchangePlanAt&) { return server_course(ps::Consistency::bsp()); },
          .exact = {{""}}};
}

}  // namespace trireme::sync
