// Max-plus: where no link carries two messages at a time, a round's end is the latest of what it waits for, plus what
// it costs. Every rank's rounds are read one at a time and none is kept.
#include <algorithm>
#include <utility>

#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/round_work.h"

namespace trireme::cluster {
namespace {

// When the messages of one rank in one direction end, on so many wires: each begins when both ranks are ready and a
// wire is free, in the order in which they can begin.
class Queue {
 public:
  template <class Cost>
  void fill(const PerPeer& messages, double ready, const std::vector<double>& others, int wires, const Cost& cost) {
    order_.clear();
    ends_.clear();
    for (int peer : messages.peers()) order_.emplace_back(std::max(ready, others[peer]), peer);
    std::stable_sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    free_.assign(wires > 0 ? static_cast<std::size_t>(wires) : order_.size(), 0.0);
    for (auto [start, peer] : order_) {
      double& wire = *std::min_element(free_.begin(), free_.end());
      wire = std::max(wire, start) + cost(peer, messages[peer]);
      ends_.emplace_back(peer, wire);
    }
    std::sort(ends_.begin(), ends_.end());
  }

  double end(int peer) const { return std::lower_bound(ends_.begin(), ends_.end(), std::pair(peer, 0.0))->second; }

 private:
  std::vector<std::pair<int, double>> ends_;  // by peer
  std::vector<std::pair<double, int>> order_;
  std::vector<double> free_;  // by wire, from when on
};

class Clock {
 public:
  explicit Clock(const Playing& playing)
      : playing_(playing),
        network_(playing.network),
        reader_(playing.algorithm, playing.shape, playing.element),
        schedules_(schedules_of(playing)),
        ready_(schedules_.size()),
        end_(playing.begins.begin(), playing.begins.end()) {}

  Played run() {
    for (int k = 0; k < schedules_[0].rounds; ++k) {
      bool crowded = false;  // some rank has more messages one way than wires
      for (int rank = 0; rank < ranks(); ++rank) {
        const RoundWork& work = reader_.read(schedules_[rank], rank, k);
        const LinkModel& own = network_.node(rank).inside;
        ready_[rank] =
            end_[rank] + static_cast<double>(work.copied) * own.copy + static_cast<double>(work.folded) * own.gamma;
        const auto wires = static_cast<std::size_t>(wires_of(rank));
        crowded |= wires > 0 && std::max(work.sent.peers().size(), work.received.peers().size()) > wires;
      }
      // Read again rather than keep: a round of ten thousand ranks need not fit in memory.
      crowded ? exchange_in_turn(k) : exchange(k);
    }
    std::copy(end_.begin(), end_.end(), playing_.ends.begin());
    return {Tier::max_plus, *std::max_element(end_.begin(), end_.end()), messages_};
  }

 private:
  int ranks() const { return static_cast<int>(schedules_.size()); }
  int wires_of(int rank) const {
    const NodeClass& node = network_.node(rank);
    if (!network_.one_node()) return node.wires;
    return node.inside.wires == Wires::one ? 1 : 0;
  }

  double cost(int from, int to, std::uint64_t bytes) {
    if (!network_.uniform()) return network_.message(from, to, static_cast<double>(bytes));
    if (std::exchange(last_bytes_, bytes) != bytes) last_cost_ = network_.message(0, 1, static_cast<double>(bytes));
    return last_cost_;
  }

  template <typename End>
  void finish(int rank, int k, const End& end_of) {
    const RoundWork& work = reader_.read(schedules_[rank], rank, k);
    double last = ready_[rank];
    for (int peer : work.received.peers()) last = std::max(last, end_of(peer, rank, work.received[peer]));
    for (int peer : work.sent.peers()) {
      const std::uint64_t bytes = work.sent[peer];
      const double ended = end_of(rank, peer, bytes);
      last = std::max(last, ended);
      ++messages_;
      if (playing_.traffic != nullptr) playing_.traffic->add(network_, rank, peer, bytes);
      if (playing_.observe) playing_.observe({rank, peer, k, bytes, ended - cost(rank, peer, bytes), ended});
    }
    end_[rank] = last + static_cast<double>(work.reduced) * network_.node(rank).inside.gamma;
  }

  void exchange(int k) {
    for (int rank = 0; rank < ranks(); ++rank) {
      finish(rank, k, [&](int from, int to, std::uint64_t bytes) {
        return std::max(ready_[from], ready_[to]) + cost(from, to, bytes);
      });
    }
  }

  // A message ends when it has had its turn on the sender's wires and on the receiver's.
  void exchange_in_turn(int k) {
    out_.resize(schedules_.size());
    in_.resize(schedules_.size());
    for (int rank = 0; rank < ranks(); ++rank) {
      const RoundWork& work = reader_.read(schedules_[rank], rank, k);
      out_[rank].fill(work.sent, ready_[rank], ready_, wires_of(rank),
                      [&](int peer, std::uint64_t bytes) { return cost(rank, peer, bytes); });
      in_[rank].fill(work.received, ready_[rank], ready_, wires_of(rank),
                     [&](int peer, std::uint64_t bytes) { return cost(peer, rank, bytes); });
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      finish(rank, k, [&](int from, int to, std::uint64_t) { return std::max(out_[from].end(to), in_[to].end(from)); });
    }
  }

  const Playing& playing_;
  const Network& network_;
  RoundReader reader_;
  std::vector<Schedule> schedules_;
  std::vector<double> ready_, end_;
  std::vector<Queue> out_, in_;
  std::uint64_t messages_ = 0;
  std::uint64_t last_bytes_ = UINT64_MAX;
  double last_cost_ = 0;
};

}  // namespace

std::vector<Schedule> schedules_of(const Playing& playing) {
  std::vector<Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(playing.shape.ranks));
  Call call = playing.shape;
  for (call.rank = 0; call.rank < call.ranks; ++call.rank) schedules.push_back(playing.algorithm.plan(call));
  return schedules;
}

Played play_max_plus(const Playing& playing) { return Clock(playing).run(); }

}  // namespace trireme::cluster
