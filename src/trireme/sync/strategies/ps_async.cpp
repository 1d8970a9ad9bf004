// Parameter server, asynchronous: every gradient is applied when it comes, nobody waits:
//   w_{t+1} = update(w_t, (1/N) g_i(w_{t−τ})),  τ the updates by others since worker i read.
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/server_worker.h"

namespace trireme::sync {

namespace {

ServerWorker::Reading reading_of(const Values& values) {
  return values.is("read", "live") ? ServerWorker::Reading::live : ServerWorker::Reading::each_step;
}

}  // namespace

StrategyKind ps_async() {
  auto traits = kServerTraits;
  traits.own_pace = true;
  traits.repeatable = false;
  return {.name = "ps-async",
          .summary = "parameter server; every gradient is applied as it comes",
          .settings = {{"read", "step", "weights are read once a step, or live: others' updates land while it computes",
                        one_of({"step", "live"})}},
          .traits = traits,
          .needs_servers = true,
          .compresses = StrategyKind::Compresses::gradients,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<ServerWorker>(context, ps::Consistency::asynchronous(), reading_of(values));
          },
          .exchange_plan =
              [](const Values& values, const ExchangePlanAt&) {
                return server_course(ps::Consistency::asynchronous(), reading_of(values));
              }};
}

}  // namespace trireme::sync
