// `trireme bench ops`: the implementations of operators beside each other, in turns, on the shapes of a model's layers.
#include "trireme/cli/bench/ops/ops_command.h"
#include "trireme/cli/command.h"

namespace trireme::cli {

void add_bench_ops(CLI::App& app) {
  bench::add_ops_command(*app.add_subcommand("bench-ops", "Measure operators' implementations: also `bench ops`"),
                         {bench::onednn_peer(), bench::openblas_peer()}, kTorchPeer);
}

}  // namespace trireme::cli
