#include "trireme/cli/torch/train_servers.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/size.h"

namespace trireme::cli {

int Cast::host(int rank, int hosts) const {
  if (is_worker(rank)) return rank / (workers / hosts);
  return is_server(rank) ? (rank - workers) % hosts : 0;
}

std::string Cast::name(int rank) const {
  if (is_worker(rank)) return fmt::format("worker {}", rank);
  return is_server(rank) ? fmt::format("server {}", rank - workers) : "the coordinator";
}

// The first worker keeps the books.
bool Cast::expendable(int rank) const {
  if (is_worker(rank)) return rank > 0 && (!colocated || replicas > 1);
  return is_server(rank) && replicas > 1;
}

Cast cast_of(const train::Config& config, int remote) {
  Cast cast{.workers = static_cast<int>(config.workers), .remote = remote};
  cast.colocated = config.servers == "colocated";
  if (!cast.colocated) cast.servers = static_cast<int>(parse_integer(config.servers, "--servers", 0, 4096));
  cast.replicas = static_cast<int>(config.replicas);
  cast.lease_s = config.lease;
  if (cast.all_servers() == 0) {
    throw ConfigError("--servers 0: nobody keeps the weights; add --remote-servers N, or leave it out");
  }
  if (cast.replicas > cast.all_servers()) {
    throw ConfigError(fmt::format("--replicas {}: there are only {} servers", cast.replicas, cast.all_servers()));
  }
  return cast;
}

ps::CoordinatorOptions coordinator_options(const Cast& cast, const std::string& at, const net::Key& key) {
  return {.at = at,
          .key = key,
          .workers = cast.workers,
          .servers = cast.all_servers(),
          .replicas = cast.replicas,
          .lease_s = cast.lease_s};
}

ps::ServerOptions server_options(int number, const std::string& at, const net::Key& key) {
  return {.at = at, .key = key, .name = fmt::format("server-{}", number)};
}

void coordinate(const Cast& cast, const std::string& at, const net::Key& key, double timeout_s) {
  ps::Coordinator coordinator(coordinator_options(cast, at, key));
  const auto deadline = Deadline::in_seconds(timeout_s);
  for (bool begun = false; begun || !deadline.passed();) {
    auto workers = coordinator.view().workers.size();
    begun = begun || workers > 0;
    if (begun && workers == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void serve(const Cast& cast, int rank, const std::string& at, const net::Key& key) {
  ps::Server server(server_options(rank - cast.workers, at, key));
  while (!server.wait(Deadline::in_seconds(1))) {
  }
}

}  // namespace trireme::cli
