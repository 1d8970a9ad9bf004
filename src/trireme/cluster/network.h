// What messages between workers cost, and where they meet. A network is cheap to copy and never changes.
//
// A message of m bytes alone takes the latencies of the links it crosses and then as long as the slowest of them needs
// for m bytes. Rank r of a call is worker r, or the one that on() says.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/base/mutex.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/sim/traffic.h"
#include "trireme/cluster/topology.h"
#include "trireme/collective/schedule.h"

namespace trireme::cluster {

// How much every link carries where each rank sends one byte to every other.
struct PairLoads {
  std::vector<std::uint64_t> messages;  // by link of the topology
  std::uint64_t inside = 0;             // between workers of one node
  double shared_s = 0;                  // of the shared link that needs longest for its bytes
};

// What the rounds of an algorithm move, for a unit of bytes: round_model.cpp.
struct RoundLoads {
  struct Round {
    double latency_s = 0, bytes = 0;  // the most of a message
    int from = 0, to = 0;             // of one with most
    double shared_s = 0;              // of the link that needs longest for what it carries
    double compute_s = 0;             // of the slowest rank
  };
  std::vector<Round> rounds;
};

// What was found out about a network so far, kept for whoever asks again. Any thread; all under guard.
struct Memory {
  Mutex guard;
  std::map<std::array<std::uint64_t, 4>, const Algorithm*> picked
      TRIREME_GUARDED_BY(guard);  // by collective, size class, ranks, coarseness
  std::map<std::tuple<const Algorithm*, std::size_t, std::size_t>, double> alone
      TRIREME_GUARDED_BY(guard);  // seconds, by elements, their bytes
  std::map<std::vector<int>, std::shared_ptr<const Network>> seen TRIREME_GUARDED_BY(guard);  // by those who see it
  std::map<const Algorithm*, std::shared_ptr<const RoundLoads>> rounds TRIREME_GUARDED_BY(guard);  // of all ranks
  std::shared_ptr<const PairLoads> pairs TRIREME_GUARDED_BY(guard);
};

class Network {
 public:
  explicit Network(Cluster cluster);
  // The same network seen by fewer: its rank r is this one's rank ranks[r]. Who asks again shares what was found out.
  Network on(std::vector<int> ranks) const;
  // By the first so many.
  Network first(int ranks) const;

  const Cluster& cluster() const { return state_->cluster; }
  const Topology& topology() const { return state_->topology; }
  int ranks() const;
  int worker(int rank) const { return places_.empty() ? rank : places_[static_cast<std::size_t>(rank)]; }
  const NodeClass& node(int rank) const { return state_->cluster.nodes[state_->class_of[worker(rank)]]; }

  // Alone in the network, in seconds.
  double message(int from, int to, double bytes) const;
  // Of which it waits before its first byte goes.
  double latency(int from, int to) const;
  // A message costs the same between any two ranks, each on a node of its own, and every rank reduces as fast.
  bool uniform() const { return uniform_; }
  // What one does there, if it is a straight line; null if not.
  const Curve* line() const;
  bool one_node() const { return one_node_; }
  // Workers of one node share fewer wires than they could use.
  bool waits_for_wires() const { return waits_for_wires_; }
  // Messages between different pairs can slow each other down, even where no rank sends or receives two at once.
  bool shared() const { return shared_; }
  // All ranks read each other's memory.
  bool shares_memory() const { return one_node_ && node(0).shares_memory; }
  // What a call of all workers takes over what its messages do, where that was measured; 1 elsewhere.
  double correction(const Algorithm& algorithm, const Call& shape, DType type) const;
  // Everyone sends to everyone. Found out once; the time of ranks².
  const PairLoads& pair_loads() const;
  Memory& memory() const { return *memory_; }

 private:
  struct State {
    Cluster cluster;
    Topology topology;
    std::vector<int> class_of;  // by worker
  };
  void look();

  std::shared_ptr<const State> state_;
  std::vector<int> places_;  // by rank; empty: the workers in their order
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  bool uniform_ = false, shared_ = false, one_node_ = false, waits_for_wires_ = false;
};

}  // namespace trireme::cluster
