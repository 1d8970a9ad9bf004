// What `bench simulate` simulates.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace trireme::bench {

struct SimulatedCase {
  int nodes = 0;
  double simulated_s = 0;
  std::string wrong;  // what is not as it must be; empty if all is
};

struct SimulateCase {
  std::string_view name;
  int nodes;
  bool grows;    // can be run with fewer nodes
  double bar_s;  // on one core it is to take less
  SimulatedCase (*run)(int nodes);
};
std::span<const SimulateCase> simulate_cases();

}  // namespace trireme::bench
