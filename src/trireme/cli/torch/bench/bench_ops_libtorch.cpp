// `trireme bench ops` with LibTorch's operators among the peers.
#include "trireme/cli/bench/ops/ops_command.h"
#include "trireme/cli/torch/bench/libtorch_peer.h"
#include "trireme/cli/torch/command.h"

namespace trireme::cli {

void add_bench_ops_libtorch(CLI::App& bench) {
  bench::add_ops_command(*bench.add_subcommand("ops", "Operators' implementations, beside LibTorch's"),
                         {bench::onednn_peer(), bench::openblas_peer(), bench::libtorch_peer()});
}

}  // namespace trireme::cli
