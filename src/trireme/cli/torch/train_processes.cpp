// Starts the workers of `trireme train`, and its servers, as processes.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/train_command.h"
#include "trireme/cli/torch/train_mesh.h"
#include "trireme/launch/emulate/hosts.h"
#include "trireme/launch/launch.h"
#include "trireme/ps/wire/endpoint.h"
#include "trireme/train/learner/workload.h"

namespace trireme::cli {

void run_as_processes(const train::Config& config, const TrainCommand& options, std::vector<std::string> arguments) {
  launch::LaunchSpec spec;
  spec.name = "trireme train";
  spec.command = {launch::own_program(), "train"};
  spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
  spec.command.insert(spec.command.end(), {"--out", config.out});
  spec.workers = static_cast<int>(config.workers);
  spec.transport = config.transport;
  spec.network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
  spec.output = launch::Output::passthrough;
  spec.bind = options.bind;
  spec.key_file = options.key_file;
  spec.endpoint = options.endpoint;
  if (!spec.endpoint.empty()) spec.timeout_s = config.timeout;
  spec.nodes = nodes_of(options);
  if (spec.nodes > 1 && options.node.empty()) {
    throw ConfigError(
        fmt::format("--nnodes {} needs --node-rank, 0 to {}, another on each node", spec.nodes, spec.nodes - 1));
  }
  if (!options.node.empty()) {
    spec.node = static_cast<int>(parse_integer(options.node, "--node-rank", 0, spec.nodes - 1));
  }
  spec.grace_s = 2;
  // Somewhat less than others wait for it: woken to be ended, it makes the step that they wait for, and all can save.
  const double patience = config.timeout - std::min(1.0, 0.2 * config.timeout);
  if (config.workers > 1 || spec.nodes > 1) spec.stopped_s = [patience](int) { return patience; };
  auto threads = std::to_string(train::compute_threads(config, spec.workers));
  spec.env = {{"OMP_NUM_THREADS", threads}, {"OPENBLAS_NUM_THREADS", threads}};
  std::optional<JobBegun> begun;
  if (needs_servers(config) && !train::uses_mesh(config)) {
    if (spec.nodes > 1) {
      throw ConfigError(
          fmt::format("--nnodes with --strategy {}: start servers on other hosts by hand, with trireme serve, and say "
                      "how many with "
                      "--remote-servers",
                      config.strategy));
    }
    const auto cast = cast_for(config, options);
    spec.workers = cast.processes();
    spec.called = [cast](int rank) { return cast.name(rank); };
    begun.emplace();
    spec.inherited = begun->fd();
    spec.env.emplace_back(JobBegun::kVariable, std::to_string(begun->fd()));
    spec.expendable = [cast, &begun](int rank) { return begun->is_set() && cast.expendable(rank); };
    // The coordinator gives up who is silent for longer than the lease.
    spec.stopped_s = [cast, &begun, patience](int rank) {
      const bool leased = cast.is_worker(rank) || cast.is_server(rank);
      return begun->is_set() && leased ? std::min(patience, cast.lease_s) : patience;
    };
    auto endpoint = options.ps_endpoint.empty() ? ps::fresh_name("train") : options.ps_endpoint;
    if (spec.network.hosts > 0) {
      net::check_emulated_network(spec.network, cast.workers, spec.transport);
      if (!options.ps_endpoint.empty()) throw ConfigError("--hosts: emulated hosts reach no others; no --ps-endpoint");
      spec.host_of = [cast, hosts = spec.network.hosts](int rank) { return cast.host(rank, hosts); };
      endpoint = launch::emulated_address(0) + ":29400";  // nobody else is there
    }
    spec.env.emplace_back("TRIREME_PS", endpoint);
  }
  heed_stop_signals(on_launcher_signal);
  auto result = launch::launch(spec);
  // A worker that ended by itself has said why; that everything was told to end is no news.
  const bool killed = result.rank >= 0 && WIFSIGNALED(result.wait_status);
  const bool told = result.rank < 0 && result.exit_code != 128 + SIGINT && result.exit_code != 128 + SIGTERM;
  if (result.exit_code != 0 && (killed || told) && !result.failure.empty()) {
    fmt::print(stderr, "trireme: {}\n", result.failure);
  }
  if (result.exit_code != 0) throw Exit{result.exit_code};
}

}  // namespace trireme::cli
