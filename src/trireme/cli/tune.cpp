// trireme tune: measures what communication costs here and keeps it for `auto`.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/cli/command.h"
#include "trireme/collective/communicator.h"
#include "trireme/collective/measure.h"
#include "trireme/net/launch/launch.h"
#include "trireme/net/world.h"

namespace trireme::cli {
namespace {

struct Options {
  int ranks = 2;
  std::string transport = "shm";
  bool dry_run = false;
  bool json = false;
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

void print(const Tuning& tuning, std::string_view transport, double seconds) {
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
  fmt::print("{} in {:.1f} s, kept in {}\n", tuning.source, seconds, tuning_path(transport));
}

void measure(Communicator& comm, const Options& options) {
  const bool shows = comm.rank() == 0 && isatty(STDERR_FILENO) != 0;
  const double start = now_seconds();
  auto tuning = measure_tuning(comm, [&](std::string_view what) {
    if (shows) fmt::print(stderr, "\r\x1b[Kmeasuring {}", what);
  });
  if (shows) fmt::print(stderr, "\r\x1b[K");
  if (comm.rank() != 0) return;
  if (!options.dry_run) save_tuning(tuning, comm.transport());
  if (options.json) {
    auto line = to_json(tuning);
    line["transport"] = comm.transport();
    line["ranks"] = comm.size();
    line["fingerprint"] = machine_fingerprint();
    fmt::print("{}\n", line.dump());
  } else {
    print(tuning, comm.transport(), now_seconds() - start);
  }
}

void tune(const Options& options) {
  if (options.ranks < 2 || options.ranks > 1024) throw ConfigError("--ranks: communication needs 2 to 1024 ranks");
  // Under a launcher (ours, on one host or several, or another) this is one of the ranks.
  if (net::world_from_environment().size > 1) {
    auto comm = init();
    return measure(comm, options);
  }
  if (options.transport == "inproc") {
    return run_threads(options.ranks, [&](Communicator& comm) { measure(comm, options); });
  }
  net::LaunchSpec spec;
  spec.name = "trireme tune";
  spec.command = {net::own_program(), "tune"};
  if (options.dry_run) spec.command.push_back("--dry-run");
  if (options.json) spec.command.push_back("--json");
  spec.workers = options.ranks;
  spec.transport = options.transport;
  spec.output = net::Output::passthrough;
  auto result = net::launch(spec);
  if (result.exit_code != 0) throw Error("tune failed: " + result.failure);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* tune_app = app.add_subcommand("tune", "measure what communication costs here, for --algorithm auto");
  tune_app->add_option("--ranks,--workers,--nproc-per-node,-n", options->ranks, "ranks to measure with")
      ->capture_default_str();
  tune_app->add_option("--transport", options->transport, "inproc, shm or tcp")
      ->check(CLI::IsMember({"inproc", "shm", "tcp"}))
      ->capture_default_str();
  tune_app->add_flag("--dry-run", options->dry_run, "measure and print, but keep nothing");
  tune_app->add_flag("--json", options->json, "one JSON object");
  tune_app->callback([options] { tune(*options); });
}

}  // namespace trireme::cli
