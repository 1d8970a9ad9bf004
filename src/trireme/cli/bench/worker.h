// Trireme itself as the benchmark measures it: the hidden subcommand `bench-worker`.
#pragma once
#include <CLI/CLI.hpp>

namespace trireme::bench {

void add_worker(CLI::App& app);

}  // namespace trireme::bench
