// The PyTorch that benchmarks compare with.
#pragma once
#include <string>
#include <vector>

namespace trireme::bench {

struct PyTorch {
  std::string python;   // the interpreter it belongs to
  std::string version;  // "2.15.0"
};

// Debian's, and the one that `./trireme packages peers` brings: those of them that can be imported; which is faster
// depends on the model, so that measuring has to tell. Throws ConfigError where there is none.
std::vector<PyTorch> pytorch_here();
// Those whose interpreters are given.
std::vector<PyTorch> pytorch_among(const std::vector<std::string>& pythons);

}  // namespace trireme::bench
