// One benchmark: systems that take turns at every size, and what came out.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/cli/bench/pattern.h"
#include "trireme/cli/bench/peers.h"
#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {

struct Options {
  Collective what = Collective::all_reduce;
  int ranks = 2;
  std::vector<std::uint64_t> bytes;
  std::string transport = "auto", algorithm = "auto", buffers = "heap";
  DType dtype = DType::f32;
  Op op = Op::sum;
  // Of Trireme: the first is what others are compared with. Where there are several, each has as many calls under way
  // as the largest.
  std::vector<int> lanes{1};
  int under_way() const { return *std::ranges::max_element(lanes); }
  std::size_t iterations = 0;  // 0: as many as fill a quarter of a second
  int rounds = 5;
  bool deterministic = false;
  std::vector<const Peer*> peers;
};

// One system at one size.
struct Result {
  std::string system, algorithm, transport, buffers;
  std::vector<double> p50_us;  // of each round
  double min_us = 0;
  double mean_us = 0;  // median over rounds
  std::size_t iterations = 0;
  std::size_t errors = 0;
  int lanes = 0;  // 0: a peer
  double median_us() const;
};

struct Row {
  std::uint64_t bytes = 0;       // of the larger buffer of a rank
  std::uint64_t count = 0;       // elements, as the collective counts them
  std::vector<Result> results;   // Trireme first, with each number of lanes; then the peers
  std::vector<double> ping_ns;   // of each round; empty on one core
  std::vector<double> floor_us;  // of each round; empty where nothing is moved

  // Median over rounds of ours over theirs, or over our own with other lanes; both of the same round.
  double ratio(std::size_t system) const;
  // The same against whichever peer was fastest in the round.
  double ratio_to_best() const;
  std::optional<double> floor_fraction(std::size_t system) const;
  std::optional<double> ping() const;
  std::string state() const;  // near, far, mixed; "-" on one core
};

class Session {
 public:
  // Builds the peers, starts every system.
  explicit Session(Options options);
  const std::vector<std::unique_ptr<RankGroup>>& groups() const { return groups_; }
  // The launcher of each and its flags, in the same order; empty where there is none.
  const std::vector<std::string>& settings() const { return settings_; }
  Row measure(std::uint64_t bytes);

 private:
  struct Pace {
    std::size_t warmup, iterations;
    double expected_s;
  };
  void start(const std::string& name, const std::vector<Argv>& commands, const std::string& socket);
  Pace find_pace(RankGroup& group);
  void require_memory(const Job& job, int buffers) const;
  void play_round(int round, const std::vector<Pace>& paces, Row& row);

  Options options_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
  std::vector<std::string> settings_;
};

// "2 lanes"
std::string lanes_text(int lanes);

// What makes Trireme's ranks come to a listener at `socket`.
std::vector<Argv> own_commands(const Options& options, const std::string& socket, int lanes = 1);

// Shows where the benchmark is, on a terminal only; an empty text takes it away.
void show_progress(const std::string& text);

}  // namespace trireme::bench
