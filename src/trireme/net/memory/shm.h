// Processes of one host that share memory: a control block and one heap per rank, all memfds, passed over a Unix
// socket in the abstract namespace at the start. Nothing of it has a name in a file system, so nothing is left behind.
#pragma once
#include <memory>
#include <vector>

#include "trireme/net/world.h"

namespace trireme::net {

// Collective over the ranks of the job, all on this host and of this user. Throws Timeout naming those that did not
// come, ConfigError when ranks disagree or another job of this name runs.
std::unique_ptr<Transport> connect_shm(const WorldSpec& spec, const ConnectOptions& options);

// The same code with threads as ranks, for tools that cannot follow one page through two mappings.
std::vector<std::unique_ptr<Transport>> shm_world_of_threads(int ranks);

}  // namespace trireme::net
