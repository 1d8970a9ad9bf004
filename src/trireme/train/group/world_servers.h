// A parameter server of the ranks of a world: each has a server and a client, the first one the coordinator. Nothing is
// to be started by hand, and nothing outlives the world.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "trireme/collective/run/communicator.h"
#include "trireme/ps/client/client.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/server/server.h"

namespace trireme::train {

class WorldServers {
 public:
  // Whether servers could find each other: on one host, or where the first rank knows its MASTER_ADDR. Collective.
  static bool possible(Communicator& world);
  // Collective; the world must outlive it. Throws ConfigError where that is not possible, Timeout.
  explicit WorldServers(Communicator& world, double lease_s = 60);
  // Of this rank alone: what others still need of it is lost to them. close() first where all goes well.
  ~WorldServers();

  ps::Client& client() { return *client_; }
  // Every rank leaves, then servers end. Collective.
  void close();

 private:
  Communicator& world_;
  std::optional<ps::Coordinator> coordinator_;  // the first rank's
  std::optional<ps::Server> server_;
  std::optional<ps::Client> client_;
};

}  // namespace trireme::train
