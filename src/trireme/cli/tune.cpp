// trireme tune: measures what communication costs here and keeps it for `auto`. `tune --ops`, of operators, is
// torch/tune_ops.cpp.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/base/available_memory.h"
#include "trireme/base/clock.h"
#include "trireme/base/cores.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/cores.h"
#include "trireme/cli/command.h"
#include "trireme/cli/output_file.h"
#include "trireme/cluster/cluster.h"
#include "trireme/collective/cost/measure.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/launch/launch.h"
#include "trireme/net/emulated_network.h"
#include "trireme/net/world.h"

namespace trireme::cli {
namespace {

struct TuneOptions {
  int ranks = 2;
  std::string transport = "shm";
  bool dry_run = false;
  bool json = false;
  std::string cluster;  // a file to write
};

void print_curve(const char* title, const Curve& curve, bool rate) {
  fmt::print("{}\n", title);
  if (curve.start > 0) fmt::print("  {:>8}  {}\n", "start", format_seconds(curve.start));
  for (const auto& point : curve.points) {
    fmt::print("  {:>8}  {:<10}", format_size(static_cast<std::uint64_t>(point.bytes)), format_seconds(point.seconds));
    if (rate) fmt::print("  {:.2f} GB/s", point.bytes / point.seconds * 1e-9);
    fmt::print("\n");
  }
}

std::string size_or_never(std::size_t bytes) { return bytes == SIZE_MAX ? "never" : "from " + format_size(bytes); }

void print(const Tuning& tuning, std::string_view transport, double seconds, bool kept) {
  print_curve("one message each way, by size (α at the start, then β)", tuning.model.message, true);
  fmt::print("γ   {:.1f} GB/s reduced, {:.1f} GB/s copied, in cache\n", 1e-9 / tuning.model.gamma,
             1e-9 / tuning.model.copy);
  if (transport != "tcp") {
    fmt::print("one synchronization of all ranks: {}\n", format_seconds(tuning.model.sync));
    print_curve("loads and stores of one rank in an all-reduce, by bytes", tuning.model.memory, true);
    fmt::print("through the posts up to {}; private memory staged by {}; direct results past the cache: {}\n",
               format_size(tuning.inline_limit), format_size(tuning.stage_chunk), size_or_never(tuning.streaming_from));
  }
  fmt::print("looks before giving way: {}\n", tuning.spins);
  fmt::print("{} in {:.1f} s, {}\n", tuning.source, seconds,
             kept ? "kept in " + tuning_path(transport) : "not kept (--dry-run)");
}

int ranks_of_a_host(int ranks) {
  const int local = net::workers_beside(net::world_from_environment().local_size);
  return local >= 1 && ranks % local == 0 ? local : ranks;
}

// What was measured as a cluster for `trireme simulate` and `trireme plan`: the hosts of this job, each with its ranks.
void write_cluster(const Tuning& tuning, const Communicator& comm, const std::string& path) {
  const int on_each = comm.transport() == "inproc" ? comm.size() : ranks_of_a_host(comm.size());
  cluster::Cluster cluster = cluster::host_cluster(on_each, tuning.model);
  cluster::NodeClass& node = cluster.nodes.front();
  node.count = comm.size() / on_each;
  node.cores = usable_cores();
  node.memory_bytes = available_memory().value_or(0);
  node.inline_limit = tuning.inline_limit;
  node.shares_memory = comm.transport() != "tcp";
  if (node.count > 1) {
    cluster.wiring.kind = "star";
    cluster.links.front() = {"between-hosts", tuning.model.message, true};
  }
  write_output(path, "--cluster",
               fmt::format("# {}, as `trireme tune --cluster` measured it over {} with {} ranks.\n"
                           "# docs/clusters.md says what every key means.\n{}",
                           machine_fingerprint(), comm.transport(), comm.size(), cluster::to_toml(cluster)));
}

// While it lives, this rank is on a core of its own: two that share one for a moment wait for each other a hundred
// times as long. Only once there is a communicator, and no longer than needed: whoever is bound takes the one core for
// the whole machine.
class OwnCore {
 public:
  explicit OwnCore(const Communicator& comm) {
    const auto cores = bench::cores_of_process();
    if (comm.size() > static_cast<int>(cores.size())) return;
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    bench::bind_this_thread(cores[static_cast<std::size_t>(comm.rank())]);
    bound_ = true;
  }
  ~OwnCore() {
    if (bound_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }
  OwnCore(const OwnCore&) = delete;
  OwnCore& operator=(const OwnCore&) = delete;

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

void measure(Communicator& comm, const TuneOptions& options) {
  const bool shows = comm.rank() == 0 && isatty(STDERR_FILENO) != 0;
  const double start = now_seconds();
  const auto progress = [&](std::string_view what) {
    if (shows) fmt::print(stderr, "\r\x1b[Kmeasuring {}", what);
  };
  const auto tuning = [&] {
    OwnCore core(comm);
    return measure_tuning(comm, progress);
  }();
  if (shows) fmt::print(stderr, "\r\x1b[K");
  if (comm.rank() != 0) return;
  if (!options.dry_run) save_tuning(tuning, comm.transport());
  if (!options.cluster.empty()) write_cluster(tuning, comm, options.cluster);
  if (options.json) {
    auto line = to_json(tuning);
    line["transport"] = comm.transport();
    line["ranks"] = comm.size();
    line["fingerprint"] = machine_fingerprint();
    fmt::print("{}\n", line.dump());
  } else {
    print(tuning, comm.transport(), now_seconds() - start, !options.dry_run);
  }
}

void tune(const TuneOptions& options) {
  if (options.ranks < 2 || options.ranks > 1024) throw ConfigError("--ranks: communication needs 2 to 1024 ranks");
  const auto world = net::world_from_environment();
  // Before minutes of measuring, and by the one who writes it.
  if (!options.cluster.empty() && world.rank == 0) check_output(options.cluster, "--cluster");
  // Under a launcher (ours, on one host or several, or another) this is one of the ranks.
  if (world.size > 1) {
    auto comm = init();
    return measure(comm, options);
  }
  if (options.transport == "inproc") {
    return run_threads(options.ranks, [&](Communicator& comm) { measure(comm, options); });
  }
  launch::LaunchSpec spec;
  spec.name = "trireme tune";
  spec.command = {launch::own_program(), "tune"};
  if (options.dry_run) spec.command.push_back("--dry-run");
  if (options.json) spec.command.push_back("--json");
  if (!options.cluster.empty()) spec.command.insert(spec.command.end(), {"--cluster", options.cluster});
  spec.workers = options.ranks;
  spec.transport = options.transport;
  spec.output = launch::Output::passthrough;
  auto result = launch::launch(spec);
  if (result.exit_code == 0) return;
  // A rank that ended by itself has said why.
  if (result.rank >= 0 && result.exit_code < 128) throw Exit{result.exit_code};
  throw Error("tune failed: " + result.failure);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* tune_app = app.add_subcommand("tune", "measure what communication costs here, for --algorithm auto");
  tune_app->add_option("--ranks,--workers,--nproc-per-node,-n", options->ranks, "ranks to measure with")
      ->capture_default_str();
  tune_app->add_option("--transport", options->transport, "inproc, shm or tcp")
      ->check(CLI::IsMember({"inproc", "shm", "tcp"}))
      ->capture_default_str();
  tune_app->add_flag("--dry-run", options->dry_run, "measure and print, but keep nothing");
  tune_app->add_option("--cluster", options->cluster, "also write what was measured as a cluster.toml");
  tune_app->add_flag("--json", options->json, "one JSON object");
  tune_app->add_flag_callback(
      "--ops", [] { throw ConfigError("--ops: takes no value"); },  // as a word by itself it is trireme-torch's
      "instead the operators of a model's layers, for train --ops auto: tune --ops --help");
  tune_app->callback([options] { tune(*options); });
}

}  // namespace trireme::cli
