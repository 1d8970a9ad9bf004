// The commands that need LibTorch. `trireme` becomes this program when one of them is asked for.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "trireme/base/file_limit.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/program.h"
#include "trireme/cli/torch/command.h"
#include "trireme/grad/autocast.h"

namespace trireme::cli {
namespace {
std::vector<std::string> given_arguments;
}
const std::vector<std::string>& program_arguments() { return given_arguments; }
}  // namespace trireme::cli

int main(int argc, char** argv) {
  trireme::avoid_amx();
  trireme::report_file_limit();
  CLI::App app{"Trireme: distributed deep-learning training for C++ on LibTorch", "trireme"};
  app.require_subcommand(1);
  trireme::cli::add_train(app);
  trireme::cli::add_eval(app);
  trireme::cli::add_predict(app);
  trireme::cli::add_compare(app);
  trireme::cli::add_profile(app);
  trireme::cli::add_bench_ddp(app);
  trireme::cli::add_data(app);
  if (argc > 2) trireme::cli::given_arguments.assign(argv + 2, argv + argc);
  // A run goes on when whoever reads its output has seen enough.
  std::signal(SIGPIPE, SIG_IGN);
  const int code = trireme::cli::run_program(app, trireme::cli::normalize_arguments(argc, argv));
  // LibTorch's static destructors take time and have nothing to give back.
  std::fflush(nullptr);
  std::_Exit(code);
}
