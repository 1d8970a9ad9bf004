// What a program of a user's own runs (trireme/train.h), and what main.cpp adds benchmarks to.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "trireme/base/files/file_limit.h"
#include "trireme/base/hardware/blas_core.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/memory.h"
#include "trireme/cli/program.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/train_flags.h"
#include "trireme/train.h"

namespace trireme::cli {
namespace {

std::vector<std::string> given_arguments;

constexpr std::array kCommands{add_train, add_eval, add_predict, add_compare, add_profile, add_data};

}  // namespace

const std::vector<std::string>& program_arguments() { return given_arguments; }

void add_training_commands(CLI::App& app) {
  for (const auto add : kCommands) add(app);
}

int run_training_program(CLI::App& app, int argc, char** argv) {
  report_file_limit();
  if (argc > 2) given_arguments.assign(argv + 2, argv + argc);
  std::signal(SIGPIPE, SIG_IGN);  // a run goes on when whoever reads its output has seen enough
  return run_program(app, normalize_arguments(argc, argv));
}

}  // namespace trireme::cli

namespace trireme {
namespace {

void add_all(const Additions& mine) {
  for (const auto& one : mine.models) add_model(one);
  for (const auto& one : mine.data) add_source(one);
  for (const auto& one : mine.losses) add_loss(one);
  for (const auto& one : mine.metrics) add_metric(one);
  for (const auto& one : mine.optimizers) add_optimizer(one);
  for (const auto& one : mine.strategies) add_strategy(one);
  for (const auto& one : mine.codecs) add_codec(one);
  auto& defaults = cli::default_config();
  if (!mine.models.empty()) defaults.model = mine.models.front().name;
  if (!mine.data.empty()) defaults.data = mine.data.front().name;
}

// The words of a command line that begins with a command: where there is none it is `train`.
std::vector<char*> with_command(const CLI::App& app, int argc, char** argv) {
  static char train[] = "train";
  std::vector<char*> words(argv, argv + argc);
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h" || first == "--version") return words;
  const auto commands = app.get_subcommands([&](const CLI::App* one) { return one->check_name(std::string(first)); });
  if (commands.empty()) words.insert(words.begin() + 1, train);
  return words;
}

}  // namespace

int train_main(int argc, char** argv, const Additions& mine) try {
  add_all(mine);
  cli::tune_memory();
  if (set_blas_core()) {  // workers that are processes inherit it; this one has loaded its BLAS
    std::fprintf(stderr,
                 "%s uses kernels for older CPUs in this process; set OPENBLAS_CORETYPE=%s before the program starts\n",
                 blas_in_use().c_str(), std::getenv("OPENBLAS_CORETYPE"));
  }
  CLI::App app{"Trains by Trireme: distributed deep-learning training for C++ on LibTorch", argc > 0 ? argv[0] : ""};
  app.require_subcommand(1);
  cli::add_training_commands(app);
  auto words = with_command(app, argc, argv);
  return cli::run_training_program(app, static_cast<int>(words.size()), words.data());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}

}  // namespace trireme
