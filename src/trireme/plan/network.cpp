#include "trireme/plan/network.h"

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"

namespace trireme::plan {
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
  Network seen = *this;
  seen.places_ = std::move(ranks);
  seen.choices_ = std::make_shared<Choices>();
  seen.look();
  return seen;
}

int Network::ranks() const { return places_.empty() ? state_->topology.workers() : static_cast<int>(places_.size()); }

void Network::look() {
  const Topology& topology = state_->topology;
  bool alone = true, one_class = true, one_node = true;  // a node each, of one class; all on one
  bool limited = false;                                  // wires that several workers of a node share
  int last_node = -1;
  for (int rank = 0; rank < ranks(); ++rank) {
    const int at = topology.place(worker(rank)).node;
    alone &= at != std::exchange(last_node, at);
    one_class &= state_->class_of[worker(rank)] == state_->class_of[worker(0)];
    one_node &= at == topology.place(worker(0)).node;
    limited |= node(rank).wires > 0 && node(rank).workers > 1;
  }
  const bool equal_routes = state_->cluster.wiring.kind == "flat" || state_->cluster.wiring.kind == "star";
  uniform_ = (alone && one_class && equal_routes && places_.empty()) || (one_node && ranks() > 1);
  shares_memory_ = one_node && node(0).shares_memory;
  shared_ = !one_node && (topology.blocking() || limited);
}

double Network::latency(int from, int to) const {
  const Topology& topology = state_->topology;
  std::vector<int> links;
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

}  // namespace trireme::plan
