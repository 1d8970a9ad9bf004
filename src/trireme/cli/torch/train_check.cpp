// Which flags of `trireme train` go together, beyond the settings of a run.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/torch/train_command.h"
#include "trireme/cli/torch/train_mesh.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/net/emulated_network.h"
#include "trireme/train/config/straggle.h"

namespace trireme::cli {
namespace {

// Threads are of one process on one host, and need no launcher.
void check_thread_flags(const TrainCommand& options) {
  const std::pair<const char*, bool> flags[] = {{"--nnodes", nodes_of(options) > 1},
                                                {"--node-rank", !options.node.empty()},
                                                {"--rdzv-endpoint", !options.endpoint.empty()},
                                                {"--bind", !options.bind.empty()},
                                                {"--key-file", !options.key_file.empty()}};
  for (const auto& [flag, given] : flags) {
    if (given) {
      throw ConfigError(
          fmt::format("{}: threads are all in one process here; leave it out, or --launch threads", flag));
    }
  }
}

}  // namespace

int nodes_of(const TrainCommand& options) {
  return static_cast<int>(parse_integer(options.nodes, "--nnodes", 1, 1 << 16));
}

void check_hosts(const train::Config& config, const std::string& launcher) {
  const char* emulated = std::getenv("TRIREME_HOSTS");
  if (config.hosts == (emulated ? emulated : net::kNoHosts)) return;
  throw ConfigError(fmt::format("--hosts {}: the hosts are {}'s to emulate; give it --hosts, or this --hosts none",
                                config.hosts, launcher));
}

void check_join_flags(const train::Config& config, const TrainCommand& options) {
  const std::pair<const char*, bool> flags[] = {{"--nnodes", nodes_of(options) > 1},
                                                {"--ps-endpoint", !options.ps_endpoint.empty()},
                                                {"--node-rank", !options.node.empty()},
                                                {"--rdzv-endpoint", !options.endpoint.empty()},
                                                {"--bind", !options.bind.empty()},
                                                {"--remote-servers", options.remote_servers != "0"},
                                                {"--launch threads", config.launch == "threads"}};
  for (const auto& [flag, given] : flags) {
    if (given) throw ConfigError(fmt::format("{}: is for who starts a job; leave it out with --join", flag));
  }
  if (!needs_servers(config) || train::uses_mesh(config)) {
    throw ConfigError("--join: the job has servers, which share out its batches; add --strategy ps-async");
  }
}

void check_server_flags(const train::Config& config, const TrainCommand& options) {
  if (needs_servers(config) && !train::uses_mesh(config)) return;
  const char* flag = options.remote_servers != "0"  ? "--remote-servers"
                     : !options.ps_endpoint.empty() ? "--ps-endpoint"
                                                    : nullptr;
  if (flag) {
    throw ConfigError(fmt::format(
        "{}: has no effect {}; leave it out", flag,
        needs_servers(config) ? "on a mesh, where every worker serves its own part" : "without a --strategy ps-*"));
  }
}

void check_start(const train::Config& config, const TrainCommand& options) {
  if (config.launch == "threads") check_thread_flags(options);
  std::error_code none;
  if (std::filesystem::exists(config.out, none) && !std::filesystem::is_directory(config.out, none)) {
    throw ConfigError(fmt::format("--out {}: there is a file of that name; name a folder", config.out));
  }
  if (nodes_of(options) > 1) return;  // each says for itself how many workers it has
  const auto shape = train::told_mesh(config).value_or(mesh::MeshShape{.data = static_cast<int>(config.workers)});
  if (shape.size() != config.workers) {
    throw ConfigError(
        fmt::format("--mesh {}: that is {} workers, and there are {}; make data × pipe × tensor {} or "
                    "change --workers",
                    config.mesh, shape.size(), config.workers, config.workers));
  }
  if (config.mesh != "auto") {
    train::Straggle(config.straggle).check_rank(shape.data, train::uses_mesh(config) ? "replicas" : "workers");
  }
}

Cast cast_for(const train::Config& config, const TrainCommand& options) {
  auto cast = cast_of(config, static_cast<int>(parse_integer(options.remote_servers, "--remote-servers", 0, 4096)));
  if (cast.remote > 0 && options.ps_endpoint.empty()) {
    throw ConfigError("--remote-servers: they must find us; add --ps-endpoint HOST:PORT");
  }
  return cast;
}

}  // namespace trireme::cli
