// LibTorch's operators as a rival in `bench ops`.
#pragma once
#include "trireme/cli/bench/ops/op_peer.h"

namespace trireme::bench {

// As a model calls them in training: forward keeps what backward needs, backward runs by autograd.
OpPeer libtorch_peer();

}  // namespace trireme::bench
