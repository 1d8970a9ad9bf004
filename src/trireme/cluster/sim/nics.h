// Messages between single workers in the order they are sent: each waits for its turn at the sender's way out and at
// the receiver's way in, and where the fabric is narrower than its nodes at every link between, which all go on with
// others meanwhile. The last of many ends when fair shares would have it; the first sooner. Private to the simulator.
#pragma once
#include <algorithm>
#include <vector>

#include "trireme/cluster/network.h"

namespace trireme::cluster {

class Nics {
 public:
  explicit Nics(const Network& network) : network_(network) {
    const auto places = static_cast<std::size_t>(network.ranks());
    const auto nodes = static_cast<std::size_t>(network.cluster().node_count());
    inside_.resize(places);
    ways_.resize(nodes);
    if (network.topology().blocking()) free_.resize(network.topology().links().size());
  }

  // Sends `bytes` at `at_s`; returns when they have arrived. Calls come in the order of time.
  double send(int from, int to, double bytes, double at_s) {
    const double whole = network_.message(from, to, bytes);
    const double latency = std::min(whole, network_.latency(from, to));
    const int out_node = node_of(from), in_node = node_of(to);
    if (out_node == in_node) return through(inside_[from].out, inside_[to].in, at_s, whole, latency);
    const double ends =
        through(way(ways_[out_node].out, out_node), way(ways_[in_node].in, in_node), at_s, whole, latency);
    return free_.empty() ? ends : std::max(ends, over_fabric(from, to, bytes, at_s) + latency);
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
  // When the last of the links between the two nodes' own has carried the bytes.
  double over_fabric(int from, int to, double bytes, double at_s) {
    network_.topology().route(network_.worker(from), network_.worker(to), route_);
    double end = 0;
    for (std::size_t i = 1; i + 1 < route_.size(); ++i) {
      const Link& link = network_.topology().links()[static_cast<std::size_t>(route_[i])];
      double& free = free_[static_cast<std::size_t>(route_[i])];
      if (!link.shared) continue;
      free = std::max(free, at_s) + bytes / link.bytes_per_s;
      end = std::max(end, free);
    }
    return end;
  }
  static double through(double& out, double& in, double at_s, double whole, double latency) {
    const double bytes_s = whole - latency;
    out = std::max(out, at_s) + bytes_s;
    in = std::max(in, at_s) + bytes_s;
    return std::max(out, in) + latency;
  }

  static constexpr int kAny = 64;  // messages of a node at once, where nothing limits them
  const Network& network_;
  std::vector<One> inside_;   // by rank
  std::vector<Way> ways_;     // by node
  std::vector<double> free_;  // by link of the fabric, from when on; empty where it is wide enough
  std::vector<int> route_;
};

}  // namespace trireme::cluster
