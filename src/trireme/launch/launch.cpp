#include "trireme/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/launch/launcher.h"

namespace trireme::launch {
namespace {

void check(const LaunchSpec& spec) {
  auto require = [](bool good, const std::string& otherwise) {
    if (!good) throw ConfigError(otherwise);
  };
  require(!spec.command.empty(), "no program to run; write it after --");
  require(spec.workers >= 1 && spec.workers <= kMostWorkers,
          fmt::format("{} workers: there can be 1 to {} on a host", spec.workers, kMostWorkers));
  require(spec.transport == "auto" || spec.transport == "shm" || spec.transport == "tcp",
          fmt::format("transport '{}' is not one of auto, shm, tcp", spec.transport));
  require(spec.nodes >= 1, fmt::format("{} nodes: there must be at least one", spec.nodes));
  require(spec.node >= 0 && spec.node < spec.nodes,
          fmt::format("node rank {} is not below the number of nodes, {}", spec.node, spec.nodes));
  require(spec.nodes == 1 || !spec.endpoint.empty(),
          "several nodes need --rdzv-endpoint HOST:PORT, where node 0 listens");
  require(spec.nodes == 1 || spec.transport != "shm",
          "transport shm reaches one host only; use tcp or auto on several");
  if (spec.network.hosts > 0) {
    require(spec.nodes == 1 && spec.endpoint.empty(),
            "--hosts emulates all hosts here: leave out --nnodes and the rest");
    require(spec.bind.empty(), "--hosts gives each emulated host its address: leave out --bind");
    net::check_emulated_network(spec.network, spec.host_of ? spec.network.hosts : spec.workers, spec.transport);
  }
  for (double seconds : {spec.grace_s, spec.timeout_s, spec.silence_s}) {
    require(std::isfinite(seconds) && seconds >= 0 && seconds <= 1e6,
            fmt::format("{} is not a time in seconds", seconds));
  }
}

// Descriptors 0, 1 and 2 must be taken, lest a pipe gets their numbers.
void fill_standard_descriptors() {
  int fd = 0;
  while (fd >= 0 && fd <= 2) fd = ::open("/dev/null", O_RDWR);
  if (fd > 2) ::close(fd);
}

}  // namespace

OpenFilesLimit::OpenFilesLimit(int workers) {
  ::getrlimit(RLIMIT_NOFILE, &before_);
  rlim_t needed = 4 * static_cast<rlim_t>(workers) + 128;
  if (before_.rlim_cur >= needed) return;
  if (before_.rlim_max < needed) {
    const auto who = workers > 0 ? fmt::format("{} workers need", workers) : std::string("this takes");
    throw ConfigError(fmt::format("{} {} open files, and the limit here is {}; raise it with ulimit -Hn", who, needed,
                                  before_.rlim_max));
  }
  rlimit raised{needed, before_.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

LaunchResult launch(const LaunchSpec& spec) {
  check(spec);
  fill_standard_descriptors();
  LaunchSpec effective = spec;
  if (spec.network.hosts > 0) {
    effective.transport = "tcp";
    if (!spec.host_of) effective.host_of = [each = spec.workers / spec.network.hosts](int rank) { return rank / each; };
  }
  return Launcher(effective).run();
}

}  // namespace trireme::launch
