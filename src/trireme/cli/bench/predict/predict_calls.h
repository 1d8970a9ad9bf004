// How well calls are predicted: every collective by every algorithm, at sizes between those that the model's
// corrections were fitted at, in the same minutes.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cli/bench/judged.h"

namespace trireme::bench {

struct CallsQuestion {
  std::string transport = "shm";
  int ranks = 2;
  int rounds = 3;
  std::size_t largest = 16 << 20;  // bytes
};

// Throws DataError where a result was wrong.
std::vector<Judged> judge_calls(const CallsQuestion& question);

}  // namespace trireme::bench
