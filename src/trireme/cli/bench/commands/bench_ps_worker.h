// A worker that `trireme bench ps` measures, with a server in its process: the hidden subcommand `bench-ps-worker`.
#pragma once
#include <CLI/CLI.hpp>

namespace trireme::bench {

inline constexpr int kPsBuffers = 4;  // pairs of rounds in turn; with 23 MB more than 256 MiB per worker
void add_ps_worker(CLI::App& app);

}  // namespace trireme::bench
