// `trireme bench NAME`: how fast a collective is on this host, beside the host's memory and beside other libraries.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/bench/report.h"
#include "trireme/cli/bench/worker.h"
#include "trireme/cli/command.h"
#include "trireme/cli/refuse.h"
#include "trireme/collective/run/communicator.h"

namespace trireme::cli {
namespace {

constexpr int kMostBenchRanks = 256;
constexpr std::uint64_t kMostBytes = 64ULL << 30;

// As given on the command line.
struct BenchFlags {
  std::string what, ranks = "2", bytes = "4,1K,64K,1M,16M,64M", dtype = "f32", op = "sum", lanes = "1";
  std::string transport = "auto", algorithm = "auto", buffers = "heap";
  std::string iterations, rounds = "5", peers;
  bool deterministic = false, json = false;
};

void require_one_of(std::string_view flag, const std::string& text, std::initializer_list<std::string_view> valid) {
  for (auto word : valid) {
    if (word == text) return;
  }
  not_one_of(flag, text, views_of(valid));
}

Collective measured_collective(const std::string& text) {
  try {
    return parse_collective(text);
  } catch (const ConfigError&) {
    std::vector<std::string_view> names;
    for (const Algorithm& algorithm : algorithms()) {
      if (std::ranges::find(names, name(algorithm.what)) == names.end()) names.push_back(name(algorithm.what));
    }
    names.insert(names.end(), kOwnBenchmarks.begin(), kOwnBenchmarks.end());
    names.insert(names.end(), kTorchBenchmarks.begin(), kTorchBenchmarks.end());
    throw ConfigError(fmt::format("there is no benchmark '{}'; {}there are: {}", clipped(text),
                                  did_you_mean(text, names), fmt::join(names, ", ")));
  }
}

std::vector<std::uint64_t> parse_bytes(const BenchFlags& flags, const bench::Options& options) {
  if (options.what == Collective::barrier) return {0};
  auto sizes = parse_sizes(flags.bytes, "--bytes");
  for (auto size : sizes) {
    if (size == 0 || size > kMostBytes || size % size_of(options.dtype) != 0) {
      throw ConfigError(fmt::format("--bytes: {} is not a whole number of {} elements from 1 element to {}", size,
                                    name(options.dtype), format_size(kMostBytes)));
    }
  }
  return sizes;
}

// "1,2,4": the first is what the others are compared with.
std::vector<int> parse_lanes(std::string_view text) {
  std::vector<int> lanes;
  for (const auto word : split(text, ',')) {
    const int count = static_cast<int>(parse_integer(word, "--lanes", 1, kMostLanes));
    if (std::ranges::find(lanes, count) != lanes.end()) {
      throw ConfigError(fmt::format("--lanes: {} is named twice", count));
    }
    lanes.push_back(count);
  }
  return lanes;
}

// What the collective asked for does nothing with.
void refuse_unused(const CLI::App& command, Collective what) {
  if (what == Collective::barrier) refuse_given(command, {"--bytes", "--dtype"}, "a barrier moves no data");
  if (!reduces(what)) {
    refuse_given(command, {"--op", "--deterministic"}, fmt::format("{} sums nothing up; leave it out", name(what)));
  }
}

bench::Options parse(const CLI::App& command, const BenchFlags& flags) {
  bench::Options options;
  options.what = measured_collective(flags.what);
  refuse_unused(command, options.what);
  options.ranks = static_cast<int>(parse_integer(flags.ranks, "--ranks", 1, kMostBenchRanks));
  options.dtype = parse_dtype(flags.dtype);
  options.op = parse_op(flags.op);
  if (reduces(options.what) && !defined(options.dtype, options.op)) {
    throw ConfigError(fmt::format("--op {} has no meaning on --dtype {}", flags.op, flags.dtype));
  }
  options.bytes = parse_bytes(flags, options);
  require_one_of("--transport", flags.transport, {"auto", "inproc", "shm", "tcp"});
  require_one_of("--buffers", flags.buffers, {"heap", "private"});
  options.transport = flags.transport;
  options.buffers = flags.buffers;
  options.algorithm = flags.algorithm;
  if (flags.algorithm != "auto") {
    const Algorithm& algorithm = find_algorithm(options.what, flags.algorithm);
    if (flags.deterministic && !algorithm.canonical) {
      std::vector<std::string_view> canonical{"auto"};
      for (const Algorithm* other : algorithms_for(options.what)) {
        if (other->canonical) canonical.push_back(other->name);
      }
      throw ConfigError(fmt::format("--deterministic: {} sums in an order of its own; choose one of: {}",
                                    algorithm.name, fmt::join(canonical, ", ")));
    }
  }
  options.lanes = parse_lanes(flags.lanes);
  if (!flags.iterations.empty()) {
    options.iterations = static_cast<std::size_t>(parse_integer(flags.iterations, "--iterations", 1, 1'000'000));
  }
  if (!flags.peers.empty()) options.peers = bench::parse_peers(flags.peers);
  // Few alternations are no comparison: the machine changes its mind within minutes.
  const bool alone = options.peers.empty() && options.lanes.size() == 1;
  options.rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", alone ? 1 : 5, 1000));
  options.deterministic = flags.deterministic;
  bench::require_exact({{options.what, 0, options.ranks, 0, 1, 1}, options.dtype, options.op});
  return options;
}

void run_bench(const CLI::App& command, const BenchFlags& flags) {
  bench::Options options = parse(command, flags);
  bench::Session session(options);
  if (!flags.json) fmt::print("{}", bench::table_head(options, session));
  std::size_t errors = 0;
  for (auto bytes : options.bytes) {
    bench::Row row = session.measure(bytes);
    fmt::print("{}", flags.json ? bench::json_rows(options, row) : bench::table_row(options, row));
    std::fflush(stdout);
    for (auto& result : row.results) errors += result.errors;
  }
  if (errors > 0) throw DataError(fmt::format("{} elements of the results were wrong", errors));
}

}  // namespace

void add_bench(CLI::App& app) {
  auto* command = app.add_subcommand("bench", "Measure a collective, beside the memory's speed and other libraries");
  auto flags = std::make_shared<BenchFlags>();
  command
      ->add_option("NAME", flags->what,
                   "The collective: all-reduce, broadcast, barrier, …; or ps, ps-soak, codec, ddp, learning, parallel, "
                   "simulate, predict, equal, ops")
      ->required();
  command->add_option("-n,--ranks,--workers,--nproc-per-node", flags->ranks, "Ranks on this host")
      ->capture_default_str();
  command->add_option("--bytes", flags->bytes, "Sizes of a rank's larger buffer")->capture_default_str();
  command->add_option("--transport", flags->transport, "auto, inproc, shm, tcp")->capture_default_str();
  command->add_option("--algorithm", flags->algorithm, "auto, or one that `trireme check` lists")
      ->capture_default_str();
  command->add_option("--buffers", flags->buffers, "heap: memory that peers can read; private: any memory")
      ->capture_default_str();
  command->add_option("--dtype", flags->dtype, "f32, f64, f16, bf16, i8, u8, i32, i64")->capture_default_str();
  command->add_option("--op", flags->op, "sum, avg, min, max, prod, band, bor, bxor")->capture_default_str();
  command
      ->add_option("--lanes", flags->lanes,
                   "Lanes that calls take in turn; 1,2,4: in turn with each other, and what they gain")
      ->capture_default_str();
  command->add_option("--iterations", flags->iterations, "Per round (default: a quarter of a second of them)");
  command->add_option("--rounds", flags->rounds, "How often every system has its turn")->capture_default_str();
  command->add_option("--peers", flags->peers, "Also measure openmpi, mpich, gloo, in turn with ours");
  command->add_flag("--deterministic", flags->deterministic, "One order of summation whatever the algorithm");
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback([flags, command] { run_bench(*command, *flags); });
  bench::add_worker(app);
}

}  // namespace trireme::cli
