// Ranks as threads of one process. Every pointer is readable by every rank: buffers are always in the heap.
#pragma once
#include <memory>
#include <vector>

#include "trireme/net/transport.h"

namespace trireme::net {

// One transport per rank, to be given to one thread each. They may be destroyed in any order.
std::vector<std::unique_ptr<Transport>> inproc_world(int ranks);

}  // namespace trireme::net
