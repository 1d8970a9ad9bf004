// The one program. Each subcommand lives in a file of its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/files/file_limit.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/command.h"
#include "trireme/cli/overview.h"
#include "trireme/cli/program.h"
#include "trireme/cli/terminal.h"
#include "trireme/cli/torch_commands.h"

namespace {

// Whether a word after `bench ops` lists the peer that is LibTorch: "libtorch", "--peers=onednn,libtorch".
bool lists_torch_peer(int argc, char** argv) {
  for (int i = 3; i < argc; ++i) {
    const std::string_view word = argv[i], list = word.substr(word.find('=') + 1);
    const auto names = trireme::split(list, ',');
    if (std::ranges::find(names, trireme::cli::kTorchPeer) != names.end()) return true;
  }
  return false;
}

bool wants_torch(int argc, char** argv) {
  std::string_view first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
  if (first == "bench" &&
      std::ranges::find(trireme::cli::kTorchBenchmarks, second) != trireme::cli::kTorchBenchmarks.end()) {
    return true;
  }
  if (first == "tune" && std::find(argv + 2, argv + argc, std::string_view("--ops")) != argv + argc) return true;
  if (first == "bench" && second == "ops" && lists_torch_peer(argc, argv)) return true;
  return std::ranges::find(trireme::cli::kTorchCommands, first, &trireme::cli::TorchCommand::name) !=
         trireme::cli::kTorchCommands.end();
}

// Some benchmarks are commands of their own.
void join_bench_words(std::vector<std::string>& words) {
  if (words.size() < 2 || words[0] != "bench") return;
  if (std::ranges::find(trireme::cli::kOwnBenchmarks, words[1]) == trireme::cli::kOwnBenchmarks.end()) return;
  words[1] = "bench-" + words[1];
  words.erase(words.begin());
}

// Nothing was asked for.
int show_overview() {
  const char* command = std::getenv("TRIREME_COMMAND");  // of the script that builds us
  const bool scripted = command != nullptr && *command != 0;
  const std::string name = scripted ? trireme::clipped(command) : "trireme";
  fmt::print("{}", trireme::cli::overview(name, scripted, trireme::cli::help_width()));
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  trireme::report_file_limit();
  if (argc == 1) return show_overview();
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
  trireme::cli::add_bench_ops(app);
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
