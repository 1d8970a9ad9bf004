// Who is in the world and how to reach them: read from the environment a launcher left, then connected.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trireme/base/clock.h"
#include "trireme/net/transport.h"

namespace trireme::net {

// One rank's place, before it has spoken to anyone.
struct WorldSpec {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;      // ranks on this host
  std::string launcher;    // "trireme run", "torchrun", "mpirun", "srun", "file", or "none"
  std::string job;         // names the job on this host: every rank of it has the same, no other job does
  std::string rendezvous;  // "host:port" or "file:/path" where rank 0 can be met; empty when all are on one host
  int listen_fd = -1;      // rank 0: a socket already listening at `rendezvous`, inherited from the launcher
};

// From TRIREME_*, torchrun's, Open MPI's, MPICH's (PMI) or Slurm's variables, in this order; with none of them the
// world is one rank. Throws ConfigError that names the variable which is missing or wrong.
WorldSpec world_from_environment();

struct ConnectOptions {
  std::string transport = "auto";  // TRIREME_TRANSPORT; auto: shm when every rank is on this host, else tcp
  std::string bind;                // TRIREME_BIND: address the tcp listeners bind to; empty: loopback
  bool payload_checksum = false;   // TRIREME_CHECKSUM=1
  double timeout_s = 60;           // TRIREME_CONNECT_TIMEOUT: for everyone to arrive
};
ConnectOptions connect_options_from_environment();

// A member of the family of transports: a line in the list in world.cpp.
struct TransportKind {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Transport> (*connect)(const WorldSpec&, const ConnectOptions&);
};
std::span<const TransportKind> transports();

// Collective over the whole world. Throws ConfigError (listing the transports there are), Timeout naming the ranks
// that did not come, ProtocolError when a peer's key is wrong.
std::unique_ptr<Transport> connect(const WorldSpec& spec, const ConnectOptions& options);

}  // namespace trireme::net
