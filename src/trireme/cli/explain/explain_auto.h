// `trireme explain auto`: what auto picks for a call, and why.
#pragma once
#include <cstdint>
#include <string>

#include "trireme/collective/schedule.h"

namespace trireme::cli {

struct AutoQuestion {
  Collective what = Collective::all_reduce;
  int ranks = 4;
  int root = 0;
  std::uint64_t bytes = 1 << 20;  // of the vector, or of one rank's block
  std::string transport = "shm";
  bool deterministic = false;
  bool json = false;
};

void explain_auto(const AutoQuestion& question);

}  // namespace trireme::cli
