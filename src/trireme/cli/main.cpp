// The one program. Each subcommand lives in a file of its own.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/command.h"
#include "trireme/cli/program.h"
#include "trireme/cli/torch_commands.h"

namespace {

bool wants_torch(int argc, char** argv) {
  std::string_view first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
  if (first == "bench" && (second == "ddp" || second == "learning" || second == "parallel")) return true;
  return std::ranges::find(trireme::cli::kTorchCommands, first, &trireme::cli::TorchCommand::name) !=
         trireme::cli::kTorchCommands.end();
}

// Some benchmarks are commands of their own.
void join_bench_words(std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 6> kOwn{"ps", "ps-soak", "codec", "equal", "predict", "simulate"};
  if (words.size() < 2 || words[0] != "bench" || std::ranges::find(kOwn, words[1]) == kOwn.end()) return;
  words[1] = "bench-" + words[1];
  words.erase(words.begin());
}

}  // namespace

int main(int argc, char** argv) try {
  if (wants_torch(argc, argv)) trireme::cli::become_torch(argv);
  CLI::App app{"Trireme: distributed deep-learning training for C++ on LibTorch", "trireme"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "trireme 0.1.0");
  for (const auto& command : trireme::cli::kTorchCommands) {
    app.add_subcommand(std::string(command.name), std::string(command.summary));
  }
  trireme::cli::add_check(app);
  trireme::cli::add_cost(app);
  trireme::cli::add_explain(app);
  trireme::cli::add_run(app);
  trireme::cli::add_tune(app);
  trireme::cli::add_simulate(app);
  trireme::cli::add_plan(app);
  trireme::cli::add_diff(app);
  trireme::cli::add_serve(app);
  trireme::cli::add_bench(app);
  trireme::cli::add_bench_ps(app);
  trireme::cli::add_bench_codec(app);
  trireme::cli::add_bench_simulate(app);
  trireme::cli::add_bench_predict(app);
  trireme::cli::add_bench_equal(app);
  trireme::cli::add_ps_soak(app);
  auto words = trireme::cli::normalize_arguments(argc, argv);
  join_bench_words(words);
  return trireme::cli::run_program(app, words);
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "trireme: %s\n", error.what());
  return error.exit_code();
}
