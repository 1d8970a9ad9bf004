// Flows: where links are shared, every rank goes through its rounds by itself and its messages take their fair share
// of what is under way at that moment.
#include <algorithm>
#include <limits>

#include "trireme/cluster/sim/flows.h"
#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/round_work.h"

namespace trireme::cluster {
namespace {

class Player {
 public:
  explicit Player(const Playing& playing)
      : playing_(playing),
        network_(playing.network),
        reader_(playing.algorithm, playing.shape, playing.element),
        schedules_(schedules_of(playing)),
        ranks_(schedules_.size()),
        flows_(playing.network) {}

  Played run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) begin_round(static_cast<int>(rank), playing_.begins[rank]);
    std::vector<int> ended;
    for (;;) {
      // All who come at one moment, before rates are asked for: they are solved once for all of them.
      const double flow = coming_.empty() || coming_.time() > flows_.now() ? flows_.next() : flows_.now();
      if (!coming_.empty() && coming_.time() <= flow) {
        const int rank = coming_.top();
        const double time = coming_.time();
        coming_.pop();
        enter(rank, time);
        continue;
      }
      if (flow == std::numeric_limits<double>::infinity()) break;
      ended.clear();
      flows_.step(ended);
      for (int id : ended) finish(id);
    }
    return {Tier::flows, *std::max_element(playing_.ends.begin(), playing_.ends.end()), messages_};
  }

 private:
  struct Send {
    int peer;
    std::uint64_t bytes;
  };
  struct Rank {
    int round = 0;
    bool here = false;    // has come to the round
    int open = 0;         // messages that have not ended
    double reduce_s = 0;  // after the last
    std::vector<Send> sends, receives;
  };
  struct Sent {
    int from, to;
    std::uint64_t bytes;
    double begin_s;
  };

  void begin_round(int rank, double time) {
    Rank& own = ranks_[rank];
    own.here = false;
    if (own.round == schedules_[rank].rounds) {
      playing_.ends[rank] = time;
      return;
    }
    const RoundWork& work = reader_.read(schedules_[rank], rank, own.round);
    const LinkModel& costs = network_.node(rank).inside;
    own.reduce_s = static_cast<double>(work.reduced) * costs.gamma;
    own.sends.clear();
    own.receives.clear();
    for (int peer : work.sent.peers()) own.sends.push_back({peer, work.sent[peer]});
    for (int peer : work.received.peers()) own.receives.push_back({peer, work.received[peer]});
    own.open = static_cast<int>(own.sends.size() + own.receives.size());
    coming_.set(rank,
                time + static_cast<double>(work.copied) * costs.copy + static_cast<double>(work.folded) * costs.gamma);
  }

  void enter(int rank, double time) {
    Rank& own = ranks_[rank];
    own.here = true;
    if (own.open == 0) return leave(rank, time);
    for (const Send& send : own.sends) {
      if (is_at(send.peer, own.round)) begin(rank, send.peer, send.bytes, time);
    }
    for (const Send& receive : own.receives) {
      if (is_at(receive.peer, own.round)) begin(receive.peer, rank, receive.bytes, time);
    }
  }
  bool is_at(int rank, int round) const { return ranks_[rank].here && ranks_[rank].round == round; }

  void leave(int rank, double time) {
    Rank& own = ranks_[rank];
    ++own.round;
    begin_round(rank, time + own.reduce_s);
  }

  void begin(int from, int to, std::uint64_t bytes, double time) {
    int id = static_cast<int>(sent_.size());
    if (free_.empty()) {
      sent_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    sent_[id] = {from, to, bytes, time};
    ++messages_;
    flows_.start(time, from, to, static_cast<double>(bytes), id);
  }

  void finish(int id) {
    const Sent sent = sent_[id];
    free_.push_back(id);
    if (playing_.traffic != nullptr) playing_.traffic->add(network_, sent.from, sent.to, sent.bytes);
    if (playing_.observe) {
      playing_.observe({sent.from, sent.to, ranks_[sent.from].round, sent.bytes, sent.begin_s, flows_.now()});
    }
    for (int rank : {sent.from, sent.to}) {
      if (--ranks_[rank].open == 0) leave(rank, flows_.now());
    }
  }

  const Playing& playing_;
  const Network& network_;
  RoundReader reader_;
  std::vector<Schedule> schedules_;
  std::vector<Rank> ranks_;
  Flows flows_;
  IndexedHeap coming_;  // ranks, by when they come to their round
  std::vector<Sent> sent_;
  std::vector<int> free_;
  std::uint64_t messages_ = 0;
};

}  // namespace

Played play_flows(const Playing& playing) { return Player(playing).run(); }

}  // namespace trireme::cluster
