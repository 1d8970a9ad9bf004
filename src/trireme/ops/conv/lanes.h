// Sums of many parts that are taken side by side: lane i sums the parts i, i + lanes, … The lanes follow from the shape
// alone, never from the number of threads, so that the sum does not depend on it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "trireme/ops/parallel.h"

namespace trireme::ops {

// For sums of so many elements: fewer where each takes much memory.
inline int64_t sum_lanes(int64_t elements, int64_t parts) {
  const int64_t most = elements <= (1 << 18) ? 4 : elements <= (1 << 20) ? 2 : 1;
  return std::clamp<int64_t>(parts, 1, most);
}

// A lane is for one thread where there are enough of them, else for the whole team.
template <class Body>
void each_lane(int64_t lanes, const Body& body) {
  if (threads() <= lanes) return parallel(lanes, body);
  for (int64_t lane = 0; lane < lanes; ++lane) body(lane);
}

}  // namespace trireme::ops
