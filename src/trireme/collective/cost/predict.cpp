#include <algorithm>
#include <utility>

#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/round_work.h"
#include "trireme/net/memory/board.h"

namespace trireme {
namespace {

// When the messages of one rank in one direction end, on one wire: each begins when both ranks are ready and the one
// before it has ended.
class Line {
 public:
  void clear() { ends_.clear(); }

  void fill(const PerPeer& messages, double ready, const std::vector<double>& others, const LinkModel& model) {
    order_.clear();
    for (int peer : messages.peers()) order_.emplace_back(std::max(ready, others[peer]), peer);
    std::stable_sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    double free = 0;
    for (auto [start, peer] : order_) {
      free = std::max(free, start) + model.message(static_cast<double>(messages[peer]));
      ends_.emplace_back(peer, free);
    }
    std::sort(ends_.begin(), ends_.end());
  }

  double end(int peer) const { return std::lower_bound(ends_.begin(), ends_.end(), std::pair(peer, 0.0))->second; }

 private:
  std::vector<std::pair<int, double>> ends_;  // by peer
  std::vector<std::pair<double, int>> order_;
};

class MessageClock {
 public:
  MessageClock(RoundReader& reader, const std::vector<Schedule>& schedules, const LinkModel& model)
      : reader_(reader), schedules_(schedules), model_(model), ready_(schedules.size()), end_(schedules.size()) {}

  double run() {
    for (int k = 0; k < schedules_[0].rounds; ++k) {
      bool crowded = false;  // some rank has several messages one way
      for (int rank = 0; rank < ranks(); ++rank) {
        const RoundWork& work = reader_.read(schedules_[rank], rank, k);
        ready_[rank] = end_[rank] + static_cast<double>(work.copied) * model_.copy +
                       static_cast<double>(work.folded) * model_.gamma;
        crowded |= work.sent.peers().size() > 1 || work.received.peers().size() > 1;
      }
      // Read again rather than keep: a round of ten thousand ranks need not fit in memory.
      crowded&& model_.wires == Wires::one ? exchange_on_one_wire(k) : exchange(k);
    }
    return *std::max_element(end_.begin(), end_.end());
  }

 private:
  int ranks() const { return static_cast<int>(schedules_.size()); }

  template <typename End>
  void finish(int rank, const RoundWork& work, End end_of) {
    double last = ready_[rank];
    for (int peer : work.sent.peers()) last = std::max(last, end_of(rank, peer, work.sent[peer]));
    for (int peer : work.received.peers()) last = std::max(last, end_of(peer, rank, work.received[peer]));
    end_[rank] = last + static_cast<double>(work.reduced) * model_.gamma;
  }

  void exchange(int k) {
    for (int rank = 0; rank < ranks(); ++rank) {
      finish(rank, reader_.read(schedules_[rank], rank, k), [&](int from, int to, std::uint64_t bytes) {
        return std::max(ready_[from], ready_[to]) + model_.message(static_cast<double>(bytes));
      });
    }
  }

  // A message ends when it has had its turn on the sender's wire and on the receiver's.
  void exchange_on_one_wire(int k) {
    out_.resize(schedules_.size());
    in_.resize(schedules_.size());
    for (int rank = 0; rank < ranks(); ++rank) {
      const RoundWork& work = reader_.read(schedules_[rank], rank, k);
      out_[rank].clear();
      in_[rank].clear();
      out_[rank].fill(work.sent, ready_[rank], ready_, model_);
      in_[rank].fill(work.received, ready_[rank], ready_, model_);
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      finish(rank, reader_.read(schedules_[rank], rank, k),
             [&](int from, int to, std::uint64_t) { return std::max(out_[from].end(to), in_[to].end(from)); });
    }
  }

  RoundReader& reader_;
  const std::vector<Schedule>& schedules_;
  const LinkModel& model_;
  std::vector<double> ready_, end_;
  std::vector<Line> out_, in_;
};

// Besides the synchronizations of its rounds: one after the last where peers' own buffers are read, one to meet first
// where what is staged does not fit the posts.
double predict_shared(RoundReader& reader, const std::vector<Schedule>& schedules, std::size_t staged,
                      const LinkModel& model) {
  int ranks = static_cast<int>(schedules.size());
  double seconds = 0;
  bool only_stages = true;
  for (int k = 0; k < schedules[0].rounds; ++k) {
    bool shared = false;
    std::uint64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RoundWork& work = reader.read(schedules[rank], rank, k);
      shared |= work.shared;
      only_stages &= work.only_stages;
      most = std::max(most, work.loaded + work.stored);
    }
    if (shared) seconds += model.sync;
    if (most > 0) seconds += model.memory(static_cast<double>(most));
  }
  return only_stages && net::Post::fits(staged) ? seconds : seconds + model.sync;
}

double predict_uncorrected(const Algorithm& algorithm, const Call& shape, DType type, const LinkModel& model) {
  if (algorithm.shared && shape.what == Collective::barrier) return shape.ranks > 1 ? model.sync : 0;
  RoundReader reader(algorithm, shape, size_of(type));
  std::vector<Schedule> schedules;
  schedules.reserve(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) schedules.push_back(reader.schedule(rank));
  if (!algorithm.shared) return MessageClock(reader, schedules, model).run();
  return predict_shared(reader, schedules, static_cast<std::size_t>(call_bytes(shape, type)), model);
}

}  // namespace

double call_bytes(const Call& shape, DType type) {
  const auto bytes = static_cast<double>(shape.count * size_of(type));
  return has_blocks(shape.what) ? bytes * shape.ranks : bytes;
}

double predict(const Algorithm& algorithm, const Call& shape, DType type, const LinkModel& model) {
  return predict_uncorrected(algorithm, shape, type, model) *
         model.corrections(shape.what, algorithm.name, shape.ranks, call_bytes(shape, type));
}

}  // namespace trireme
