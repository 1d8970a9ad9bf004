// Bytes that a rank sends at least in a call, whatever the algorithm: what calls in shared memory are counted as
// (Communicator::bytes_sent), and the simulator's too.
#pragma once
#include <cstdint>

#include "trireme/collective/schedule.h"

namespace trireme {

// `bytes` of the call's count of elements.
constexpr std::uint64_t least_sent(Collective what, std::uint64_t bytes, int root, int rank, int ranks) {
  const auto others = static_cast<std::uint64_t>(ranks - 1);
  switch (what) {
    case Collective::broadcast:
      return rank == root && ranks > 1 ? bytes : 0;
    case Collective::scatter:
      return rank == root ? bytes * others : 0;
    case Collective::gather:
    case Collective::reduce:
      return rank == root ? 0 : bytes;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return bytes * others;
    case Collective::all_reduce:
      return 2 * bytes * others / static_cast<std::uint64_t>(ranks);
    case Collective::barrier:
      return 0;
  }
  return 0;
}

}  // namespace trireme
