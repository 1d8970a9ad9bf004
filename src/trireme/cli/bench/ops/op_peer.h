// Other libraries' operators beside ours in `bench ops`.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cli/bench/ops/op_family.h"

namespace trireme::bench {

struct OpPeer {
  std::string_view name;
  std::string_view what;  // one line
  // Throws ConfigError, one line, where it is not there.
  void (*require)();
  std::string (*version)();  // of the library; called after require()
  struct Operator {
    std::string_view family;
    // None where it does not take the shape or pass.
    std::vector<Contender> (*contenders)(const OpShape& shape, ops::Pass pass);
  };
  std::vector<Operator> operators;  // of families not among them it has no row
};

OpPeer onednn_peer();    // onednn_peer.cpp
OpPeer openblas_peer();  // openblas_peer.cpp

}  // namespace trireme::bench
