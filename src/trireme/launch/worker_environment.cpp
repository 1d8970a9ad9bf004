#include "trireme/launch/worker_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "trireme/base/cores.h"

namespace trireme::launch {
namespace {

std::string host_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Variables inherited() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    auto equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

int threads_per_worker(int workers) { return std::max(1, usable_cores() / workers); }

Variables common_environment(const LaunchSpec& spec, const Placement& placement, const JobKey& key) {
  Variables variables = inherited();
  for (const char* stale : {"TRIREME_RDZV_FD", "TRIREME_KEY", "TRIREME_KEY_FILE", "TRIREME_BIND", "TRIREME_HOSTS",
                            "TRIREME_BANDWIDTH", "TRIREME_LATENCY"})
    variables.erase(stale);
  variables.emplace("OMP_NUM_THREADS", std::to_string(threads_per_worker(spec.workers)));  // unless set
  variables["WORLD_SIZE"] = variables["ROLE_WORLD_SIZE"] = std::to_string(placement.world_size);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(spec.workers);
  variables["GROUP_RANK"] = std::to_string(spec.node);
  variables["GROUP_WORLD_SIZE"] = std::to_string(spec.nodes);
  variables["ROLE_NAME"] = "default";
  variables["MASTER_ADDR"] = placement.master_host;
  variables["MASTER_PORT"] = std::to_string(placement.master_port);
  variables["TORCHELASTIC_RUN_ID"] = placement.job;
  variables["TORCHELASTIC_RESTART_COUNT"] = variables["TORCHELASTIC_MAX_RESTARTS"] = "0";
  variables["TRIREME_JOB"] = placement.job;
  variables["TRIREME_RDZV"] = host_port(placement.master_host, placement.rendezvous_port);
  variables["TRIREME_TRANSPORT"] = spec.transport;
  if (spec.network.hosts > 0) {
    variables["TRIREME_HOSTS"] = net::hosts_text(spec.network);
    variables["TRIREME_BANDWIDTH"] = net::bandwidth_text(spec.network);
    variables["TRIREME_LATENCY"] = net::latency_text(spec.network);
  }
  if (!placement.bind.empty()) variables["TRIREME_BIND"] = placement.bind;
  if (key.file.empty()) {
    variables["TRIREME_KEY"] = net::to_hex(key.key);
  } else {
    variables["TRIREME_KEY_FILE"] = key.file;
  }
  for (const auto& [name, value] : spec.env) variables[name] = value;
  return variables;
}

std::vector<std::string> worker_environment(const Variables& common, int rank, int local_rank, int rendezvous_fd) {
  Variables variables = common;
  variables["RANK"] = variables["ROLE_RANK"] = std::to_string(rank);
  variables["LOCAL_RANK"] = std::to_string(local_rank);
  if (rendezvous_fd >= 0) variables["TRIREME_RDZV_FD"] = std::to_string(rendezvous_fd);
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace trireme::launch
