// Randomized collectives over short-lived groups, judged by a plain sequential computation: what `trireme check
// --random` runs. Groups of every size end at once, later, or before the call they started; calls differ in
// collective, type, operator, root, count, algorithm and memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "trireme/collective/run/communicator.h"

namespace trireme {

struct RandomCalls {
  std::uint64_t calls = 1000;  // at least so many, counted once for each group that makes them
  std::uint64_t seed = 1;
  std::size_t most = 1 << 15;                              // elements of a rank's vector
  std::function<void(std::uint64_t calls)> progress = {};  // now and then: so many were begun
};

// Of all ranks together.
struct RandomReport {
  std::uint64_t calls = 0;
  std::uint64_t groups = 0;
  std::uint64_t elements = 0;  // compared
  std::uint64_t wrong = 0;
  std::string first;  // a wrong element, the first of the lowest rank that has one; empty if none
};

// Collective over `world`; the same arguments on every rank.
RandomReport make_random_calls(Communicator& world, const RandomCalls& how);

}  // namespace trireme
