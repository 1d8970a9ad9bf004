// How a process becomes a rank of the world that its environment describes.
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/net/world.h"

namespace trireme {

Communicator init(const Options& options) {
  return join_world(net::connect(net::world_from_environment(), net::connect_options_from_environment()), options);
}

}  // namespace trireme
