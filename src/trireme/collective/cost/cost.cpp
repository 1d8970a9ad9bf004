#include "trireme/collective/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/collective/cost/round_work.h"

namespace trireme {
namespace {

// The sum of these over all sends equals the sum over all receives only if they match, but for one chance in 2⁶⁴.
std::uint64_t message_hash(int from, int to, int round, std::uint64_t bytes) {
  std::uint64_t value = bytes * 0x9e3779b97f4a7c15;
  for (int part : {from, to, round}) {
    value = (value ^ static_cast<std::uint64_t>(part)) * 0xff51afd7ed558ccd;
    value ^= value >> 32;
  }
  return value;
}

// Adds up rounds, rank after rank.
class Tally {
 public:
  Tally(int ranks, bool shared) : shared_(shared), known_(ranks, -1), sent_(ranks), received_(ranks) {}

  void begin(int rank, int rounds) {
    TRIREME_CHECK(rank == 0 || rounds == static_cast<int>(active_.size()));
    active_.resize(rounds);
    rank_ = rank;
    wires_ = 0;
    reduced_ = 0;
  }

  void add(int k, const RoundWork& work) {
    if (work.communicates()) active_[k] = true;
    std::uint64_t sent_now = 0;
    for (int peer : work.sent.peers()) {
      std::uint64_t bytes = work.sent[peer];
      sent_now += bytes;
      if (shared_) received_[peer] += bytes;
      meet(peer, bytes);
      balance_ += message_hash(rank_, peer, k, bytes);
    }
    for (int peer : work.received.peers()) {
      std::uint64_t bytes = work.received[peer];
      received_[rank_] += bytes;
      if (shared_) sent_[peer] += bytes;
      meet(peer, bytes);
      balance_ -= message_hash(peer, rank_, k, bytes);
    }
    sent_[rank_] += sent_now;
    reduced_ += work.folded + work.reduced;
    count_.sent_per_round = std::max(count_.sent_per_round, sent_now);
    if (shared_) {
      count_.loaded += work.loaded;
      count_.stored += work.stored;
    }
  }

  void end() {
    count_.wires = std::max(count_.wires, wires_);
    count_.max_reduced = std::max(count_.max_reduced, reduced_);
  }

  bool matched() const { return shared_ || balance_ == 0; }

  Count result() {
    count_.rounds = static_cast<int>(std::count(active_.begin(), active_.end(), true));
    count_.max_sent = *std::max_element(sent_.begin(), sent_.end());
    count_.max_received = *std::max_element(received_.begin(), received_.end());
    for (std::uint64_t bytes : sent_) count_.total_bytes += bytes;
    return count_;
  }

 private:
  void meet(int peer, std::uint64_t bytes) {
    count_.bytes_per_round = std::max(count_.bytes_per_round, bytes);
    wires_ += std::exchange(known_[peer], rank_) != rank_;
  }

  bool shared_;
  Count count_;
  std::vector<bool> active_;
  std::vector<int> known_;  // by peer: the last rank that met it
  std::vector<std::uint64_t> sent_, received_;
  std::uint64_t balance_ = 0;
  int rank_ = 0;
  int wires_ = 0;
  std::uint64_t reduced_ = 0;
};

}  // namespace

Count count_schedule(const Algorithm& algorithm, const Call& shape, std::size_t element_bytes) {
  RoundReader reader(algorithm, shape, element_bytes);
  Tally tally(shape.ranks, algorithm.shared);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    Schedule schedule = reader.schedule(rank);
    tally.begin(rank, schedule.rounds);
    for (int k = 0; k < schedule.rounds; ++k) tally.add(k, reader.read(schedule, rank, k));
    tally.end();
  }
  if (!tally.matched()) {
    throw Error(fmt::format("{} by {} on {} ranks: a send has no matching receive in its round; run `trireme check`",
                            name(shape.what), algorithm.name, shape.ranks));
  }
  return tally.result();
}

}  // namespace trireme
