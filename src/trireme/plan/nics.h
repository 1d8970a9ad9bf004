// Messages between single workers in the order they are sent: each waits for its turn at the sender's way out and at
// the receiver's way in, which both go on with others meanwhile. Private to the simulator.
#pragma once
#include <algorithm>
#include <vector>

#include "trireme/plan/network.h"

namespace trireme::plan {

class Nics {
 public:
  explicit Nics(const Network& network) : network_(network) {
    const auto places = static_cast<std::size_t>(network.ranks());
    const auto nodes = static_cast<std::size_t>(network.cluster().node_count());
    inside_.resize(places);
    ways_.resize(nodes);
  }

  // Sends `bytes` at `at_s`; returns when they have arrived. Calls come in the order of time.
  double send(int from, int to, double bytes, double at_s) {
    const double whole = network_.message(from, to, bytes);
    const double latency = std::min(whole, network_.latency(from, to));
    const int out_node = node_of(from), in_node = node_of(to);
    if (out_node == in_node) return through(inside_[from].out, inside_[to].in, at_s, whole, latency);
    return through(way(ways_[out_node].out, out_node), way(ways_[in_node].in, in_node), at_s, whole, latency);
  }

 private:
  struct Way {
    std::vector<double> out, in;  // when each of its wires is free
  };
  struct One {
    double out = 0, in = 0;
  };
  int node_of(int rank) const { return network_.topology().place(network_.worker(rank)).node; }
  // The wire that is free first. A link that messages share is one wire, as is one of so many at a time.
  double& way(std::vector<double>& wires, int node) {
    if (wires.empty()) {
      const auto& kind = network_.cluster().nodes[static_cast<std::size_t>(class_of(node))];
      const bool shared = network_.cluster().links.at(static_cast<std::size_t>(kind.link)).shared;
      wires.assign(static_cast<std::size_t>(shared ? 1 : kind.wires > 0 ? kind.wires : kAny), 0.0);
    }
    return *std::ranges::min_element(wires);
  }
  int class_of(int node) const {
    int kind = 0;
    for (int left = node; left >= network_.cluster().nodes[static_cast<std::size_t>(kind)].count; ++kind) {
      left -= network_.cluster().nodes[static_cast<std::size_t>(kind)].count;
    }
    return kind;
  }
  static double through(double& out, double& in, double at_s, double whole, double latency) {
    const double bytes_s = whole - latency;
    out = std::max(out, at_s) + bytes_s;
    in = std::max(in, at_s) + bytes_s;
    return std::max(out, in) + latency;
  }

  static constexpr int kAny = 64;  // messages of a node at once, where nothing limits them
  const Network& network_;
  std::vector<One> inside_;  // by rank
  std::vector<Way> ways_;    // by node
};

}  // namespace trireme::plan
