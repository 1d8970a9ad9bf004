// What exchanging gradients cost, and what was wrong with them.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace trireme {

// What one backward cost this rank, in seconds.
struct ExchangeTimes {
  struct OfBucket {
    std::size_t bytes = 0;
    int gradients = 0;
    double ready = 0, begin = 0, end = 0;  // full, exchange begun, ended; in now_seconds()
  };
  std::vector<OfBucket> buckets;
  double first_ready = 0;    // now_seconds() when the first gradient was ready
  double communication = 0;  // of all exchanges, overlapped or not
  double exposed = 0;        // what backward waited for them
};

// A gradient that is not finite, the first on its rank.
struct BadGradient {
  int rank = 0;
  std::string parameter;
};

}  // namespace trireme
