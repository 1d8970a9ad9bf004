// What asking a parameter server costs beside the bytes: a worker's thread, its connection's, the server's and both
// back again are woken one after the other.
#pragma once
#include <cstddef>
#include <functional>

#include "trireme/collective/communicator.h"

namespace trireme::train {

// Seconds from a push of so many elements to the weights that follow, of the last of all ranks to push, which each have
// a server of their own and come from a step; the mean, told to the first rank. 0 for one rank, and where hosts
// are several and the first does not know MASTER_ADDR. A collective call.
double measure_server_request(Communicator& world, std::size_t elements, const std::function<void()>& step, int rounds);

}  // namespace trireme::train
