// `trireme bench ps`: push and pull of a whole model by several workers, beside the memory's speed and, over TCP,
// beside Gloo's all-reduce of the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/commands/bench_ps_worker.h"
#include "trireme/cli/bench/host_fields.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/peers.h"
#include "trireme/cli/bench/ping.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/bench/session.h"
#include "trireme/cli/command.h"
#include "trireme/compress/codecs.h"
#include "trireme/ps/coordinator/coordinator.h"

namespace trireme::cli {
namespace {

struct ServerBenchFlags {
  std::string workers = "2", bytes = "23M", transport = "shm", rounds = "5", peers, compress = "none";
  bool json = false;
};

struct MeasuredServers {
  std::vector<double> ours_us, floor_us, peer_us, ping_ns;
  std::size_t errors = 0;
};

// Median over rounds of one over the other, both of the same round.
double ratio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> each;
  for (std::size_t i = 0; i < over.size(); ++i) each.push_back(over[i] / under[i]);
  return bench::median(std::move(each));
}

double p50(bench::RankGroup& group, std::size_t iterations, std::size_t& errors) {
  auto times = group.burst(2, iterations, 1);
  errors += times.errors;
  return bench::median(std::vector<double>(times.slowest_us.begin(), times.slowest_us.end()));
}

MeasuredServers measure(const ServerBenchFlags& flags, int workers, std::uint64_t bytes, int rounds) {
  const std::size_t count = bytes / sizeof(float);
  ps::CoordinatorOptions setup;
  setup.key = net::generate_key();
  setup.workers = setup.servers = workers;
  setup.lease_s = 10;  // a machine full of benchmarks is no dead one
  if (flags.transport == "tcp") setup.at = "127.0.0.1:0";
  ps::Coordinator coordinator(setup);
  ::setenv("TRIREME_PS", coordinator.endpoint().c_str(), 1);
  ::setenv("TRIREME_KEY", net::to_hex(setup.key).c_str(), 1);

  bench::TemporaryFolder folder;
  auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<bench::Argv> commands;
  std::string socket = folder.path() + "/ps";
  for (int rank = 0; rank < workers; ++rank) {
    commands.push_back({program, "bench-ps-worker", socket, std::to_string(rank), std::to_string(workers),
                        "--transport", flags.transport, "--compress", flags.compress});
  }
  bench::Listener listener(socket);
  bench::RankGroup ours("trireme", workers, commands, listener);
  const int what = static_cast<int>(Collective::all_reduce), f32 = static_cast<int>(DType::f32);
  ours.prepare(what, f32, static_cast<int>(Op::sum), count, bench::kPsBuffers);

  std::unique_ptr<bench::RankGroup> peer;
  if (!flags.peers.empty()) {
    const bench::Peer& gloo = *bench::parse_peers(flags.peers).at(0);
    std::string meeting = folder.path() + "/peer.d", at = folder.path() + "/peer";
    std::filesystem::create_directory(meeting);
    bench::Listener peers_listener(at);
    auto start = gloo.commands(bench::build_peer(gloo), workers, at, meeting);
    peer = std::make_unique<bench::RankGroup>(std::string(gloo.name), workers, start, peers_listener);
    peer->prepare(what, f32, static_cast<int>(Op::sum), count, 12);
  }

  MeasuredServers result;
  std::size_t warm_errors = 0;
  double seconds = p50(ours, 4, warm_errors) * 1e-6;
  auto iterations = static_cast<std::size_t>(std::clamp(0.3 / seconds, 6.0, 2000.0)) / 2 * 2;
  for (int round = 0; round < rounds; ++round) {
    bench::show_progress(fmt::format("ps {}: round {} of {}", flags.transport, round + 1, rounds));
    if (auto ping = bench::core_ping_ns()) result.ping_ns.push_back(*ping);
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn + round) % 2 == 0) {
        result.ours_us.push_back(p50(ours, iterations, result.errors));
      } else if (peer) {
        result.peer_us.push_back(p50(*peer, iterations, result.errors));
      }
    }
    double rate = ours.stream(1, 20);
    result.floor_us.push_back(2.0 * workers * static_cast<double>(bytes) / rate * 1e6);
  }
  bench::show_progress("");
  return result;
}

void run(const ServerBenchFlags& flags) {
  if (flags.transport != "shm" && flags.transport != "tcp") {
    not_one_of("--transport", flags.transport, std::array<std::string_view, 2>{"shm", "tcp"});
  }
  const bool exact = compress::Choice::parse(flags.compress).none();
  int workers = static_cast<int>(parse_integer(flags.workers, "--workers", 1, 64));
  int rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  std::uint64_t bytes = parse_size(flags.bytes, "--bytes") / 64 * 64;
  if (bytes == 0 || bytes > 4ULL << 30) throw ConfigError("--bytes: from 64 bytes to 4G");
  MeasuredServers got = measure(flags, workers, bytes, rounds);
  double us = bench::median(got.ours_us), floor = bench::median(got.floor_us);
  double ping = got.ping_ns.empty() ? 0 : bench::median(got.ping_ns);
  nlohmann::json row{{"bench", "ps push_pull"},
                     {"transport", flags.transport},
                     {"workers", workers},
                     {"servers", workers},
                     {"bytes", bytes},
                     {"us", us},
                     {"floor_us", floor},
                     {"over_floor", ratio(got.ours_us, got.floor_us)},
                     {"ping_ns", ping},
                     {"errors", got.errors},
                     {"compress", flags.compress}};
  bench::add_host(row);
  std::string text = fmt::format(
      "push_pull of {} by {} workers, {} servers colocated, over {}{}: {:.0f} µs; memory floor "
      "{:.0f} µs, {:.2f} of it; cores {}; {}\n",
      format_size(bytes), workers, workers, flags.transport, exact ? "" : " as " + flags.compress, us, floor,
      ratio(got.ours_us, got.floor_us), bench::state_of(ping),
      exact ? fmt::format("{} wrong elements", got.errors) : "results are not exact, and not checked");
  if (!got.peer_us.empty()) {
    double peer = bench::median(got.peer_us), speed = ratio(got.peer_us, got.ours_us);
    row["peer"] = flags.peers;
    row["peer_us"] = peer;
    row["speed_of_peer"] = speed;
    text += fmt::format("{} all-reduce of the same bytes: {:.0f} µs; push_pull is {:.2f} times as fast\n", flags.peers,
                        peer, speed);
  }
  fmt::print("{}", flags.json ? row.dump() + "\n" : text);
  if (got.errors > 0) throw DataError(fmt::format("{} elements of the results were wrong", got.errors));
}

}  // namespace

void add_bench_ps(CLI::App& app) {
  auto* command = app.add_subcommand("bench-ps", "Measure a parameter server: also `bench ps`");
  auto flags = std::make_shared<ServerBenchFlags>();
  command->group("");  // its name for people is `bench ps`
  command->add_option("-n,--workers,--ranks", flags->workers, "Workers, each with a server beside it")
      ->capture_default_str();
  command->add_option("--bytes", flags->bytes, "Of the model")->capture_default_str();
  command->add_option("--transport", flags->transport, "shm: servers read the workers' memory; tcp: loopback")
      ->capture_default_str();
  command->add_option("--rounds", flags->rounds, "How often each has its turn")->capture_default_str();
  command->add_option("--peers", flags->peers, "Also measure gloo's all-reduce of the same bytes, in turn");
  command->add_option("--compress", flags->compress, "A codec for gradients and weights")->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object");
  command->callback([flags] { run(*flags); });
  bench::add_ps_worker(app);
}

}  // namespace trireme::cli
