#include "trireme/cli/bench/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "trireme/base/available_memory.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/ping.h"

namespace trireme::bench {
namespace {

constexpr std::uint64_t kFootprint = 256ULL << 20;  // per rank, over its rotating buffers
constexpr int kMostBuffers = 64;
constexpr double kBurstSeconds = 0.25;
constexpr double kWarmupSeconds = 0.005;
constexpr std::uint64_t kStreamBytes = 512ULL << 20;  // per rank, to find the memory's rate
constexpr std::uint64_t kStreamPiece = 1ULL << 20;    // timed at once: reading processor time is a system call

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace

std::string lanes_text(int lanes) { return fmt::format("{} lane{}", lanes, lanes == 1 ? "" : "s"); }

std::vector<Argv> own_commands(const Options& options, const std::string& socket, int lanes) {
  Argv worker{this_program(),
              "bench-worker",
              socket,
              "--buffers",
              options.buffers,
              "--algorithm",
              options.algorithm,
              "--lanes",
              std::to_string(lanes),
              "--under-way",
              std::to_string(options.under_way())};
  if (options.deterministic) worker.push_back("--deterministic");
  const std::string ranks = std::to_string(options.ranks);
  if (options.transport == "inproc") {
    worker.insert(worker.end(), {"--threads", ranks});
    return {worker};
  }
  Argv launch{this_program(), "run", "-n", ranks, "--transport", options.transport, "--"};
  launch.insert(launch.end(), worker.begin(), worker.end());
  return {launch};
}

void show_progress(const std::string& text) {
  if (::isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K{}", text);
}

Session::Session(Options options) : options_(std::move(options)) {
  for (auto* peer : options_.peers) require_able(*peer, options_.what, options_.dtype, options_.op);
  std::vector<std::string> programs;
  for (auto* peer : options_.peers) {
    show_progress(fmt::format("building {}", peer->name));
    programs.push_back(build_peer(*peer));
  }
  // Gone again as soon as everybody has come: a benchmark that is killed leaves nothing in it behind.
  TemporaryFolder folder;
  for (const int lanes : options_.lanes) {
    const bool first = groups_.empty();
    const std::string own = fmt::format("{}/trireme{}", folder.path(), lanes);
    start(first ? "trireme" : lanes_text(lanes), own_commands(options_, own, lanes), own);
  }
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Peer& peer = *options_.peers[i];
    std::string socket = fmt::format("{}/{}", folder.path(), peer.name);
    std::string meeting = socket + ".d";
    std::filesystem::create_directory(meeting);
    start(std::string(peer.name), peer.commands(programs[i], options_.ranks, socket, meeting), socket);
  }
}

void Session::start(const std::string& name, const std::vector<Argv>& commands, const std::string& socket) {
  show_progress(fmt::format("starting {}", name));
  Listener listener(socket);
  groups_.push_back(std::make_unique<RankGroup>(name, options_.ranks, commands, listener));
  auto program = std::find_if(commands[0].begin(), commands[0].end(), [](auto& word) { return word.starts_with('/'); });
  settings_.push_back(fmt::format("{}", fmt::join(commands[0].begin(), program, " ")));
}

void Session::require_memory(const Job& job, int buffers) const {
  double bytes = 0;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Call call = job.call;
    call.rank = rank;
    std::size_t elements = input_elements(call) + (in_place(call.what) ? 0 : output_elements(call));
    bytes += static_cast<double>(elements * size_of(job.dtype)) * buffers * static_cast<double>(groups_.size());
  }
  if (bytes > 0.9 * static_cast<double>(available_memory().value_or(UINT64_MAX))) {
    throw ConfigError(fmt::format(
        "--bytes {}: {} systems of {} ranks with {} buffers each need {:.1f} GiB, more than is free",
        format_size(job.call.count * size_of(job.dtype)), groups_.size(), options_.ranks, buffers, bytes / 0x1p30));
  }
}

Session::Pace Session::find_pace(RankGroup& group) {
  std::size_t n = 2;
  double seconds = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    seconds = std::max(1e-8, group.burst(1, n, 0).mean_us * 1e-6);
    n = static_cast<std::size_t>(std::clamp(kWarmupSeconds / seconds, 2.0, 10'000.0));
  }
  std::size_t iterations = options_.iterations;
  if (iterations == 0) iterations = static_cast<std::size_t>(std::clamp(kBurstSeconds / seconds, 5.0, 100'000.0));
  return {n, iterations, seconds * static_cast<double>(iterations + n)};
}

void Session::play_round(int round, const std::vector<Pace>& paces, Row& row) {
  if (auto ping = core_ping_ns()) row.ping_ns.push_back(*ping);
  for (std::size_t turn = 0; turn < groups_.size(); ++turn) {
    std::size_t i = (turn + static_cast<std::size_t>(round)) % groups_.size();
    show_progress(fmt::format("{} {}: round {} of {}, {}", name(options_.what), format_size(row.bytes), round + 1,
                              options_.rounds, groups_[i]->name()));
    auto times = groups_[i]->burst(paces[i].warmup, paces[i].iterations, paces[i].expected_s);
    Result& result = row.results[i];
    result.p50_us.push_back(median(std::vector<double>(times.slowest_us.begin(), times.slowest_us.end())));
    double least = *std::min_element(times.slowest_us.begin(), times.slowest_us.end());
    result.min_us = round == 0 ? least : std::min(result.min_us, least);
    result.mean_us += times.mean_us / options_.rounds;
    result.iterations += paces[i].iterations;
    result.errors += times.errors;
  }
  if (row.bytes == 0) return;
  const std::uint64_t group = std::clamp<std::uint64_t>(kStreamPiece / row.bytes, 1, kMostBuffers);
  const std::uint64_t iterations = std::clamp<std::uint64_t>(kStreamBytes / (group * row.bytes), 5, 1000);
  double rate = groups_[0]->stream(group, iterations);
  double bytes = floor_bytes(options_.what, options_.ranks, static_cast<double>(row.bytes));
  if (rate > 0) row.floor_us.push_back(bytes / rate * 1e6);
}

Row Session::measure(std::uint64_t bytes) {
  const std::size_t size = size_of(options_.dtype);
  Row row;
  row.count = bytes / size;
  if (has_blocks(options_.what)) row.count = (row.count + options_.ranks - 1) / options_.ranks;
  row.bytes = row.count * size * (has_blocks(options_.what) ? options_.ranks : 1);
  int buffers = kMostBuffers;
  if (row.bytes > 0)
    buffers = static_cast<int>(std::clamp<std::uint64_t>((kFootprint + row.bytes - 1) / row.bytes, 2, kMostBuffers));
  buffers = std::max(buffers, options_.under_way());
  Job job{{options_.what, 0, options_.ranks, 0, row.count, row.count}, options_.dtype, options_.op};
  require_memory(job, buffers);

  std::vector<Pace> paces;
  for (auto& group : groups_) {
    show_progress(fmt::format("{} {}: preparing {}", name(options_.what), format_size(row.bytes), group->name()));
    auto choice = group->prepare(static_cast<int>(options_.what), static_cast<int>(options_.dtype),
                                 static_cast<int>(options_.op), row.count, buffers);
    const auto number = row.results.size();
    const bool ours = number < options_.lanes.size();
    row.results.push_back(
        {ours ? "trireme" : group->name(), choice.algorithm, choice.transport, ours ? options_.buffers : "private"});
    if (ours) row.results.back().lanes = options_.lanes[number];
    paces.push_back(find_pace(*group));
  }
  for (int round = 0; round < options_.rounds; ++round) play_round(round, paces, row);
  for (auto& group : groups_) group->release();
  show_progress("");
  return row;
}

}  // namespace trireme::bench
