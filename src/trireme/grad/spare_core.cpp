#include "trireme/grad/spare_core.h"

#include <torch/torch.h>

#include <vector>

#include "trireme/base/cores.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/sync/exchange/turn.h"

namespace trireme::grad {

bool has_spare_core(Communicator& comm, int threads) {
  int each = threads > 0 ? threads : torch::get_num_threads();
  std::vector<std::int32_t> spare{
      sync::has_spare_core(comm.impl().world->transport->ranks_on_host(), each, usable_cores())};
  comm.broadcast(spare, 0);
  return spare[0] != 0;
}

sync::Turn turn_for(Communicator& comm, int threads) {
  const bool shares_memory = comm.transport() != "tcp";
  return sync::usual_turn(shares_memory, !shares_memory || has_spare_core(comm, threads));
}

}  // namespace trireme::grad
