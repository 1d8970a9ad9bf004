// trireme run: launches a program on the workers of one or several hosts.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/command.h"
#include "trireme/cli/program.h"
#include "trireme/launch/launch.h"

namespace trireme::cli {
namespace {

struct RunOptions {
  std::string workers = "1", nodes = "1", node, grace = "0.5", timeout = "60", silence = "3";
  std::string hosts{net::kNoHosts}, bandwidth{net::kNoLimit}, latency{net::kNoLatency};
  bool no_prefix = false;
  std::vector<std::string> words;
  launch::LaunchSpec spec;
};

double seconds(const std::string& text, const char* flag, bool may_be_zero) {
  double value = parse_number(text, flag);
  if (value < 0 || value > 1e6 || (value == 0 && !may_be_zero)) {
    throw ConfigError(fmt::format("{}: '{}' is not a time in seconds{}", flag, text, may_be_zero ? "" : " above 0"));
  }
  return value;
}

void run(const CLI::App& command, RunOptions& options) {
  for (const auto& word : command.remaining()) {
    if (word == "--") break;
    bool before_dashes = !options.words.empty() && !options.words[0].starts_with(':');
    const auto said = no_such_flag(command, word);
    // It may be the program's own, where -- was forgotten.
    if (!before_dashes || said.find("did you mean") != said.npos) throw ConfigError(said);
  }
  launch::LaunchSpec& spec = options.spec;
  spec.command = words_after_dashes(options.words);
  if (spec.command.empty()) throw ConfigError("run: no program; write trireme run -n 4 -- PROGRAM ARGS");
  constexpr int kMostNodes = 1 << 16;
  spec.workers = static_cast<int>(parse_integer(options.workers, "-n", 1, launch::kMostWorkers));
  spec.nodes = static_cast<int>(parse_integer(options.nodes, "--nnodes", 1, kMostNodes));
  if (spec.nodes > 1 && options.node.empty()) {
    throw ConfigError(
        fmt::format("--nnodes {} needs --node-rank, 0 to {}, another on each node", spec.nodes, spec.nodes - 1));
  }
  if (!options.node.empty()) {
    spec.node = static_cast<int>(parse_integer(options.node, "--node-rank", 0, spec.nodes - 1));
  }
  spec.network = net::parse_emulated_network(options.hosts, options.bandwidth, options.latency);
  spec.grace_s = seconds(options.grace, "--grace", true);
  spec.timeout_s = seconds(options.timeout, "--timeout", false);
  spec.silence_s = seconds(options.silence, "--heartbeat-timeout", false);
  spec.output = options.no_prefix ? launch::Output::lines : launch::Output::prefix;
  auto result = launch::launch(spec);
  if (!result.failure.empty()) fmt::print(stderr, "{}: {}\n", spec.name, result.failure);
  if (result.exit_code != 0) throw Exit{result.exit_code};
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  if (const char* transport = std::getenv("TRIREME_TRANSPORT"); transport && *transport)
    options->spec.transport = transport;
  auto* run_command = app.add_subcommand("run", "Launch a program on the workers of one or several hosts");
  run_command->footer("example: trireme run -n 4 -- ./train --epochs 3");
  run_command->allow_extras();
  run_command->add_option("-n,--nproc-per-node,--ranks,--workers", options->workers, "workers on this host (also -np)")
      ->type_name("N");
  run_command->add_option("--transport", options->spec.transport, "auto, shm or tcp, for workers that use Trireme")
      ->type_name("NAME");
  run_command->add_option("--nnodes", options->nodes, "hosts in the job")->type_name("N");
  run_command->add_option("--node-rank", options->node, "which of them this is, from 0")->type_name("R");
  run_command->add_option("--rdzv-endpoint", options->spec.endpoint, "where node 0 listens for the others")
      ->type_name("HOST:PORT");
  run_command
      ->add_option("--hosts", options->hosts,
                   "emulate N hosts here, the workers spread over them (root; see --bandwidth)")
      ->type_name("ns:N");
  run_command->add_option("--bandwidth", options->bandwidth, "of each emulated host's link, each way: 100mbit, 12.5MB")
      ->type_name("RATE");
  run_command->add_option("--latency", options->latency, "one way between emulated hosts: 0.5ms, 200us")
      ->type_name("TIME");
  run_command
      ->add_option("--bind", options->spec.bind,
                   "address this node's listeners bind to (default: loopback, or "
                   "the one it meets the other nodes at)")
      ->type_name("ADDR");
  run_command->add_option("--key-file", options->spec.key_file, "the job's key, 64 hex digits, mode 0600")
      ->type_name("FILE");
  run_command->add_flag("--no-prefix", options->no_prefix, "do not begin lines of output with the rank");
  run_command->add_option("--grace", options->grace, "seconds from SIGTERM to SIGKILL when the rest is stopped (0.5)")
      ->type_name("S");
  run_command->add_option("--timeout", options->timeout, "seconds to wait for the other nodes (60)")->type_name("S");
  run_command->add_option("--heartbeat-timeout", options->silence, "seconds of silence after which a node is lost (3)")
      ->type_name("S");
  run_command->add_flag("--verbose", options->spec.verbose, "say what is set for the workers");
  run_command->add_option("PROGRAM", options->words, "program and arguments, after --")->type_name("-- PROGRAM ARGS");
  run_command->callback([options, run_command] { run(*run_command, *options); });
}

}  // namespace trireme::cli
