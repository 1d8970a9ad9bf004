// Who am I: the first of RANK/WORLD_SIZE (our launcher's, torchrun's), Open MPI's, PMI's, Slurm's. Where do we meet:
// TRIREME_RDZV, else nowhere in particular when all are on this host, else MASTER_ADDR, else what the launcher implies.
#include "trireme/net/join/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/net/join/slurm.h"
#include "trireme/net/socket.h"

namespace trireme::net {
namespace {

constexpr int kMostRanksStarted = 65536;

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::optional<std::string> text(const char* name) const {
    auto value = environment_(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  bool has(const char* name) const { return text(name).has_value(); }
  // `because` names what makes the variable necessary.
  std::string need(const char* name, const char* because) const {
    if (auto value = text(name)) return *value;
    throw ConfigError(fmt::format("{} is set but {} is not", because, name));
  }
  int number(const char* name, const char* because, int lowest, int highest) const {
    return static_cast<int>(parse_integer(need(name, because), name, lowest, highest));
  }
  std::optional<int> number(const char* name, int lowest, int highest) const {
    if (auto value = text(name)) return static_cast<int>(parse_integer(*value, name, lowest, highest));
    return std::nullopt;
  }

 private:
  const Environment& environment_;
};

// The names under which a launcher tells a rank its place.
struct PlaceNames {
  const char* launcher;
  const char *rank, *size, *local_rank, *local_size;
};
constexpr PlaceNames kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr PlaceNames kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                              "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr PlaceNames kPmi{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

void read_rank(const Reader& read, const PlaceNames& names, WorldSpec& spec) {
  spec.launcher = names.launcher;
  spec.size = read.number(names.size, names.rank, 1, kMostRanksStarted);
  spec.rank = read.number(names.rank, names.size, 0, spec.size - 1);
}

// Nothing said about this host: `all_here` tells what to believe.
void read_local(const Reader& read, const PlaceNames& names, bool all_here, WorldSpec& spec) {
  auto local_size = read.number(names.local_size, 1, spec.size);
  auto local_rank = read.number(names.local_rank, 0, (local_size ? *local_size : spec.size) - 1);
  if (local_rank && !local_size && !all_here) read.need(names.local_size, names.local_rank);
  if (local_size && !local_rank && *local_size != spec.size) read.need(names.local_rank, names.local_size);
  spec.local_size = local_size ? *local_size : all_here ? spec.size : 1;
  spec.local_rank = local_rank ? *local_rank : spec.local_size == spec.size ? spec.rank : 0;
}

std::string checked_host_port(const std::string& host, int port) {
  bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  std::string text = bare_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
  parse_host_port(text, "MASTER_ADDR");
  return text;
}

bool names_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

// MASTER_ADDR with MASTER_PORT, or with `port` where the launcher gives none; empty without MASTER_ADDR.
std::string master(const Reader& read, int port) {
  auto host = read.text("MASTER_ADDR");
  if (!host) return {};
  return checked_host_port(*host, read.number("MASTER_PORT", 1, 65535).value_or(port));
}

// Below the range from which the kernel takes ports for outgoing connections.
int port_from(const std::string& job) {
  std::uint32_t hash = 2166136261;
  for (unsigned char c : job) hash = (hash ^ c) * 16777619;
  return 20000 + static_cast<int>(hash % 10000);
}

void read_torchrun(const Reader& read, WorldSpec& spec) {
  read_rank(read, kTorchrun, spec);
  auto host = read.text("MASTER_ADDR");
  auto port = read.number("MASTER_PORT", 1, 65535);
  auto told = read.text("TRIREME_RDZV");
  if (host && !port && !told) read.need("MASTER_PORT", "MASTER_ADDR");
  // torchrun's agent listens at MASTER_PORT itself.
  bool agent = read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (host && port) spec.rendezvous = checked_host_port(*host, *port + (agent ? 1 : 0));
  std::string meeting = told.value_or(spec.rendezvous);
  if (meeting.empty() && spec.size > 1 && !read.has("TRIREME_JOB")) {
    throw ConfigError(
        fmt::format("rank {} of {} is not told where rank 0 is: set MASTER_ADDR and MASTER_PORT, or "
                    "TRIREME_RDZV=host:port or file:/path",
                    spec.rank, spec.size));
  }
  bool all_here =
      meeting.empty() || meeting.starts_with("file:") || names_loopback(meeting.substr(0, meeting.rfind(':')));
  read_local(read, kTorchrun, all_here, spec);
  spec.job = fmt::format("torchrun {} {} {}", read.text("TORCHELASTIC_RUN_ID").value_or("-"),
                         read.text("TORCHELASTIC_RESTART_COUNT").value_or("0"), meeting);
}

void read_open_mpi(const Reader& read, WorldSpec& spec) {
  read_rank(read, kOpenMpi, spec);
  read_local(read, kOpenMpi, false, spec);
  auto job = read.text("PMIX_NAMESPACE");
  if (!job) job = read.text("OMPI_MCA_ess_base_jobid");
  spec.job = fmt::format("openmpi {}", job.value_or(fmt::format("{}", ::getppid())));
  spec.rendezvous = master(read, port_from(spec.job));
}

// The process that started this session: under Hydra each rank leads one, whatever shells it runs through, and the
// proxy that started them all is the leader's parent.
int session_parent() {
  std::ifstream file(fmt::format("/proc/{}/stat", ::getsid(0)));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  auto name_end = text.rfind(')');
  int parent = 0;
  char state = 0;
  if (name_end != std::string::npos && std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) == 2)
    return parent;
  return ::getppid();
}

void read_pmi(const Reader& read, WorldSpec& spec) {
  read_rank(read, kPmi, spec);
  read_local(read, kPmi, false, spec);
  auto job = read.text("PMI_JOBID");
  if (job) {
    spec.job = fmt::format("pmi {}", *job);
    spec.rendezvous = master(read, port_from(spec.job));
  } else {
    // The proxy's number means something on this host only; across hosts the meeting point names the job.
    spec.rendezvous = master(read, port_from("pmi"));
    spec.job = spec.local_size == spec.size ? fmt::format("pmi {}", session_parent()) : "pmi " + spec.rendezvous;
  }
}

void read_slurm(const Reader& read, WorldSpec& spec) {
  spec.launcher = "srun";
  const char* size_name = read.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  spec.size = read.number(size_name, "SLURM_PROCID", 1, kMostRanksStarted);
  spec.rank = read.number("SLURM_PROCID", size_name, 0, spec.size - 1);
  auto job = read.text("SLURM_JOB_ID");
  if (!job) job = read.need("SLURM_JOBID", "SLURM_PROCID");
  auto step = read.text("SLURM_STEP_ID");
  spec.job = fmt::format("slurm {}.{}", *job, step.value_or(read.text("SLURM_STEPID").value_or("0")));

  const char* list_name = read.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  std::vector<std::string> hosts;
  if (auto list = read.text(list_name)) hosts = expand_hosts(*list, list_name);
  const char* tasks_name = "SLURM_STEP_TASKS_PER_NODE";
  if (auto tasks = read.text(tasks_name)) {
    auto counts = expand_tasks(*tasks, tasks_name);
    int node = read.number("SLURM_NODEID", 0, static_cast<int>(counts.size()) - 1).value_or(0);
    spec.local_size = counts[static_cast<std::size_t>(node)];
  } else if (auto per_node = read.number("SLURM_NTASKS_PER_NODE", 1, kMostRanksStarted)) {
    spec.local_size = std::min(*per_node, spec.size);
  } else {
    spec.local_size = hosts.size() > 1 ? 1 : spec.size;
  }
  if (spec.local_size > spec.size) {
    throw ConfigError(fmt::format("{}: {} tasks on this host, but {} in all ({})", tasks_name, spec.local_size,
                                  spec.size, size_name));
  }
  spec.local_rank =
      read.number("SLURM_LOCALID", 0, spec.local_size - 1).value_or(spec.local_size == spec.size ? spec.rank : 0);
  spec.rendezvous = master(read, port_from(spec.job));
  if (spec.rendezvous.empty() && !hosts.empty()) spec.rendezvous = checked_host_port(hosts[0], port_from(spec.job));
}

void apply_overrides(const Reader& read, WorldSpec& spec) {
  bool alone = spec.launcher == "none";
  if (auto job = read.text("TRIREME_JOB"); job && !alone) {
    if (spec.launcher == "torchrun") spec.launcher = "trireme run";
    spec.job = *job;
  }
  auto meeting = read.text("TRIREME_RDZV");
  if (meeting && !alone) {
    if (meeting->starts_with("file:")) {
      if (meeting->size() < 7 || (*meeting)[5] != '/') {
        throw ConfigError(fmt::format("TRIREME_RDZV: '{}' must be file:/ and an absolute path", *meeting));
      }
      if (spec.launcher == "torchrun") spec.launcher = "file";
      if (!read.has("TRIREME_JOB") && spec.launcher == "file") spec.job = *meeting;
    } else {
      parse_host_port(*meeting, "TRIREME_RDZV");
    }
    spec.rendezvous = *meeting;
  }
  if (spec.rank == 0) spec.listen_fd = read.number("TRIREME_RDZV_FD", 0, 1 << 20).value_or(-1);
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

WorldSpec world_from_environment(const Environment& environment) {
  Reader read(environment);
  WorldSpec spec;
  spec.launcher = "none";
  if (read.has("RANK") || read.has("WORLD_SIZE")) {
    read_torchrun(read, spec);
  } else if (read.has(kOpenMpi.rank) || read.has(kOpenMpi.size)) {
    read_open_mpi(read, spec);
  } else if (read.has(kPmi.rank) || read.has(kPmi.size)) {
    read_pmi(read, spec);
  } else if (read.has("SLURM_PROCID")) {
    read_slurm(read, spec);
  } else {
    if (auto name = read.has("TRIREME_RDZV") ? "TRIREME_RDZV" : nullptr) read.need("RANK", name);
    spec.job = fmt::format("alone {}", ::getpid());
  }
  // On one host nobody needs an address to meet, unless told one.
  if (spec.local_size == spec.size) spec.rendezvous.clear();
  apply_overrides(read, spec);
  if (spec.rendezvous.empty() && spec.local_size != spec.size) {
    throw ConfigError(
        fmt::format("rank {} of {} started by {}: the ranks are on several hosts, so set MASTER_ADDR (and "
                    "MASTER_PORT) or TRIREME_RDZV=host:port to where rank 0 can be reached",
                    spec.rank, spec.size, spec.launcher));
  }
  return spec;
}

ConnectOptions connect_options_from_environment(const Environment& environment) {
  Reader read(environment);
  ConnectOptions options;
  options.transport = read.text("TRIREME_TRANSPORT").value_or("auto");
  options.bind = read.text("TRIREME_BIND").value_or("");
  if (options.bind.starts_with('[') && options.bind.ends_with(']')) {
    options.bind = options.bind.substr(1, options.bind.size() - 2);
  }
  if (auto text = read.text("TRIREME_CHECKSUM")) {
    if (*text != "0" && *text != "1")
      throw ConfigError(fmt::format("TRIREME_CHECKSUM: '{}' is neither 0 nor 1", *text));
    options.payload_checksum = *text == "1";
  }
  if (auto text = read.text("TRIREME_CONNECT_TIMEOUT")) {
    options.timeout_s = parse_number(*text, "TRIREME_CONNECT_TIMEOUT");
    if (options.timeout_s <= 0 || options.timeout_s > 86400) {
      throw ConfigError(fmt::format("TRIREME_CONNECT_TIMEOUT: '{}' is not a number of seconds up to 86400", *text));
    }
  }
  return options;
}

WorldSpec world_from_environment() { return world_from_environment(process_environment()); }
ConnectOptions connect_options_from_environment() { return connect_options_from_environment(process_environment()); }

}  // namespace trireme::net
