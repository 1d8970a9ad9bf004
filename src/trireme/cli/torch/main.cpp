// The commands that need LibTorch. `trireme` becomes this program when one of them is asked for.
#include <cstdio>
#include <cstdlib>

#include "trireme/cli/torch/command.h"

int main(int argc, char** argv) {
  CLI::App app{"Trireme: distributed deep-learning training for C++ on LibTorch", "trireme"};
  app.require_subcommand(1);
  trireme::cli::add_training_commands(app);
  trireme::cli::add_bench_ddp(app);
  const int code = trireme::cli::run_training_program(app, argc, argv);
  // LibTorch's static destructors take time and have nothing to give back.
  std::fflush(nullptr);
  std::_Exit(code);
}
