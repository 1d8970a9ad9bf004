// What asking a parameter server costs beside the bytes: a worker's thread, its connection's, the server's and both
// back again are woken one after the other.
#pragma once
#include <cstddef>
#include <functional>

#include "trireme/collective/run/communicator.h"

namespace trireme::train {

struct ServerRequest {
  double seconds = 0;    // from a push of so many elements to the weights that follow; the mean
  double resumed_s = 0;  // a step takes so much longer after it than after waiting for the other ranks alone
};

// Of the last of all ranks to push, which each have a server of their own, come from a step and go on with one; told to
// the first rank. `step` says how long it took. Nothing for one rank, and where hosts are several and the first does
// not know MASTER_ADDR. A collective call.
ServerRequest measure_server_request(Communicator& world, std::size_t elements, const std::function<double()>& step,
                                     int rounds);

}  // namespace trireme::train
