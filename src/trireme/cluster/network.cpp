#include "trireme/cluster/network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/collective/cost/cost.h"

namespace trireme::cluster {
namespace {

std::vector<int> classes_by_worker(const Cluster& cluster) {
  std::vector<int> classes;
  for (std::size_t c = 0; c < cluster.nodes.size(); ++c) {
    classes.insert(classes.end(), static_cast<std::size_t>(cluster.nodes[c].count * cluster.nodes[c].workers),
                   static_cast<int>(c));
  }
  return classes;
}

// Seconds from the first byte to the last over these links.
double transfer(const Topology& topology, const std::vector<int>& links, double bytes) {
  double seconds = 0;
  int last = -1;
  for (int i : links) {
    const Link& link = topology.links()[static_cast<std::size_t>(i)];
    seconds = std::max(seconds, bytes / link.bytes_per_s);
    if (std::exchange(last, link.curve) == link.curve) continue;
    const Curve& curve = topology.curves()[static_cast<std::size_t>(link.curve)];
    seconds = std::max(seconds, curve(bytes) - curve.start);
  }
  return seconds;
}

}  // namespace

Network::Network(Cluster cluster) {
  Topology topology(cluster);
  auto classes = classes_by_worker(cluster);
  state_ = std::make_shared<const State>(State{std::move(cluster), std::move(topology), std::move(classes)});
  look();
}

Network Network::on(std::vector<int> ranks) const {
  TRIREME_CHECK(!ranks.empty());
  for (int& rank : ranks) {
    TRIREME_CHECK(rank >= 0 && rank < this->ranks());
    rank = worker(rank);
  }
  MutexLock lock(memory_->guard);
  auto& known = memory_->seen[ranks];
  if (!known) {
    Network seen = *this;
    seen.places_ = std::move(ranks);
    seen.memory_ = std::make_shared<Memory>();
    seen.look();
    known = std::make_shared<const Network>(std::move(seen));
  }
  return *known;
}

Network Network::first(int ranks) const {
  if (ranks == this->ranks()) return *this;
  std::vector<int> first(static_cast<std::size_t>(ranks));
  std::iota(first.begin(), first.end(), 0);
  return on(std::move(first));
}

int Network::ranks() const { return places_.empty() ? state_->topology.workers() : static_cast<int>(places_.size()); }

void Network::look() {
  const Topology& topology = state_->topology;
  const auto node_at = [&](int rank) { return topology.place(worker(rank)).node; };
  bool alone = true, one_class = true;  // a node each, of one class
  one_node_ = true;
  waits_for_wires_ = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    const NodeClass& own = node(rank);
    alone &= own.workers == 1;
    one_class &= state_->class_of[worker(rank)] == state_->class_of[worker(0)];
    one_node_ &= node_at(rank) == node_at(0);
    waits_for_wires_ |= own.wires > 0 && own.wires < own.workers;
  }
  const std::string& kind = state_->cluster.wiring.kind;
  uniform_ = ranks() > 1 && (one_node_ || (alone && one_class && find_topology(kind).equal_ways));
  waits_for_wires_ &= !one_node_;
  shared_ = !one_node_ && (topology.blocking() || waits_for_wires_);
}

const Curve* Network::line() const {
  if (!uniform_) return nullptr;
  const Curve& curve =
      one_node_ ? node(0).inside.message : state_->cluster.links[static_cast<std::size_t>(node(0).link)].message;
  return curve.points.empty() ? &curve : nullptr;
}

double Network::latency(int from, int to) const {
  const Topology& topology = state_->topology;
  thread_local std::vector<int> links;
  topology.route(worker(from), worker(to), links);
  if (links.empty()) return node(from).inside.message.start;
  double seconds = 0;
  for (int i : links) seconds += topology.links()[static_cast<std::size_t>(i)].latency_s;
  return seconds;
}

double Network::message(int from, int to, double bytes) const {
  const Topology& topology = state_->topology;
  thread_local std::vector<int> links;
  topology.route(worker(from), worker(to), links);
  if (links.empty()) return node(from).inside.message(bytes);
  double seconds = 0;
  for (int i : links) seconds += topology.links()[static_cast<std::size_t>(i)].latency_s;
  return seconds + transfer(topology, links, bytes);
}

double Network::correction(const Algorithm& algorithm, const Call& shape, DType type) const {
  const auto& corrections = state_->cluster.corrections;
  if (corrections.empty() || ranks() != state_->cluster.workers()) return 1;
  return corrections(shape.what, algorithm.name, shape.ranks, call_bytes(shape, type));
}

}  // namespace trireme::cluster
