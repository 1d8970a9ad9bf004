#include "trireme/cli/torch/train_servers.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/ps/view.h"

namespace trireme::cli {

int Cast::host(int rank, int hosts) const {
  if (is_worker(rank)) return rank / (workers / hosts);
  return is_server(rank) ? (rank - workers) % hosts : 0;
}

std::string Cast::name(int rank) const {
  if (is_worker(rank)) return fmt::format("worker {}", rank);
  return is_server(rank) ? fmt::format("server {}", rank - workers) : "the coordinator";
}

bool Cast::expendable(int rank) const {
  if (is_worker(rank)) return workers > 1 && (!colocated || replicas > 1);
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

JobBegun::JobBegun() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw Error(fmt::format("eventfd: {}", std::strerror(errno)));
}

bool JobBegun::is_set() const {
  pollfd entry{event_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

void JobBegun::set() {
  const char* number = std::getenv(kVariable);
  if (!number) return;  // another launcher
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(static_cast<int>(parse_integer(number, kVariable, 0, 1 << 20)), &one, sizeof one);
}

void coordinate(const Cast& cast, const std::string& at, const net::Key& key, double timeout_s) {
  ps::Coordinator coordinator(coordinator_options(cast, at, key));
  const auto deadline = Deadline::in_seconds(timeout_s);
  bool told = false;
  for (bool begun = false; begun || !deadline.passed();) {
    const auto view = coordinator.view();
    const auto workers = view.workers.size();
    if (view.ready && !std::exchange(told, true)) JobBegun::set();
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
