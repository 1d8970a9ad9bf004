// What one rank does in one round, in bytes: the one reading of steps that counting and predicting share.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme {

// Bytes by peer in one round of one rank; cleared in the time of what was added.
class PerPeer {
 public:
  explicit PerPeer(int ranks) : bytes_(ranks), seen_(ranks) {}

  void clear() {
    for (int peer : peers_) {
      bytes_[peer] = 0;
      seen_[peer] = false;
    }
    peers_.clear();
  }
  void add(int peer, std::uint64_t bytes) {
    if (!seen_[peer]) peers_.push_back(peer);
    seen_[peer] = true;
    bytes_[peer] += bytes;
  }
  const std::vector<int>& peers() const { return peers_; }
  std::uint64_t operator[](int peer) const { return bytes_[peer]; }

 private:
  std::vector<std::uint64_t> bytes_;
  std::vector<bool> seen_;
  std::vector<int> peers_;
};

// What one rank does in one round, in bytes.
struct RoundWork {
  explicit RoundWork(int ranks) : sent(ranks), received(ranks) {}

  PerPeer sent, received;
  std::uint64_t copied = 0;   // between buffers of the rank
  std::uint64_t folded = 0;   // reduced before the exchange
  std::uint64_t reduced = 0;  // reduced as it arrives, or from peers' memory
  std::uint64_t loaded = 0, stored = 0;
  bool shared = false;      // touches peers' memory
  bool only_stages = true;  // and nothing of theirs but stages

  bool communicates() const { return shared || !sent.peers().empty() || !received.peers().empty(); }
};

class RoundReader {
 public:
  RoundReader(const Algorithm& algorithm, const Call& shape, std::size_t element)
      : element_(element), call_(shape), plan_(algorithm.plan), work_(shape.ranks) {}

  Schedule schedule(int rank) {
    call_.rank = rank;
    return plan_(call_);
  }
  const RoundWork& read(const Schedule& schedule, int rank, int k);

 private:
  void add(const Step& step, int rank);
  void reduce_from(const Step& step, int rank);

  std::size_t element_;
  Call call_;
  Schedule (*plan_)(const Call&);
  Round round_;
  RoundWork work_;
};

}  // namespace trireme
