// The commands that need LibTorch. `trireme` becomes this program when one of them is asked for.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "trireme/base/hardware/blas_core.h"
#include "trireme/cli/torch/command.h"

int main(int argc, char** argv) {
  // Started by itself, and OpenBLAS has already picked the wrong kernels: once more from the beginning.
  if (trireme::set_blas_core()) execv("/proc/self/exe", argv);
  CLI::App app{"Trireme: distributed deep-learning training for C++ on LibTorch", "trireme"};
  app.require_subcommand(1);
  trireme::cli::add_training_commands(app);
  trireme::cli::add_tune_ops(app);
  trireme::cli::add_bench_ddp(app);
  const int code = trireme::cli::run_training_program(app, argc, argv);
  // LibTorch's static destructors take time and have nothing to give back.
  std::fflush(nullptr);
  std::_Exit(code);
}
