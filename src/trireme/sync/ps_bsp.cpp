// Parameter server, bulk synchronous: a round is one update by the mean of all workers' gradients, and nobody sees a
// part of it:  w_{t+1} = update(w_t, (1/N) Σ_i g_i(w_t)).
#include "trireme/sync/kinds.h"
#include "trireme/sync/server_worker.h"

namespace trireme::sync {

Kind ps_bsp() {
  return {.name = "ps-bsp",
          .summary = "parameter server; all workers wait for each other, every step",
          .settings = {},
          .traits = kServerTraits,
          .needs_servers = true,
          .compresses = Kind::Compresses::gradients,
          .proven = Kind::Proven::speedup,
          .make = [](const Values&, const Surroundings& around) -> std::unique_ptr<Strategy> {
            return std::make_unique<ServerWorker>(around, ps::Consistency::bsp());
          },
          .course = [](const Values&, const CourseAt&) { return server_course(ps::Consistency::bsp()); },
          .exact = {{""}}};
}

}  // namespace trireme::sync
