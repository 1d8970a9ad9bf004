// `bench ops`, for both programs: they differ in the peers that they know.
#pragma once
#include <CLI/CLI.hpp>
#include <vector>

#include "trireme/cli/bench/ops/op_peer.h"

namespace trireme::bench {

// Adds the flags; the callback measures. `elsewhere` are the peers of the other program, for the help.
void add_ops_command(CLI::App& command, std::vector<OpPeer> peers, std::string_view elsewhere = "");

}  // namespace trireme::bench
