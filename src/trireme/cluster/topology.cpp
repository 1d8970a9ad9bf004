// The list of topologies. A new one is a file and a line here.
#include "trireme/cluster/topology.h"

#include <array>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/settings.h"
#include "trireme/cluster/fabrics.h"

namespace trireme::cluster {
namespace {

constexpr std::array kKinds{
    TopologyKind{"flat", "everyone to everyone at full speed; only the wires of a node limit it", false, true,
                 star_fabric},
    TopologyKind{"star", "every node on one switch by a link each way", true, true, star_fabric},
    TopologyKind{"ring", "every node to its two neighbours", true, false, ring_fabric},
    TopologyKind{"fat-tree", "levels of switches, each level with so much less than comes up", true, false,
                 fat_tree_fabric},
    TopologyKind{"torus", "a grid closed in every dimension", true, false, torus_fabric},
    TopologyKind{"rail", "worker s of every node on switch s", true, false, rail_fabric},
};

}  // namespace

std::span<const TopologyKind> topology_kinds() { return kKinds; }

const TopologyKind& find_topology(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TopologyKind& kind : kKinds) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  no_such_kind("topology", name, names);
}

Link up_link(const Cluster& cluster, int link_class) {
  const LinkClass& link = cluster.links[static_cast<std::size_t>(link_class)];
  return {link_class, link.bytes_per_s(), link.message.start, link.shared};
}

Link down_link(const Cluster& cluster, int link_class) {
  Link link = up_link(cluster, link_class);
  link.latency_s = 0;
  return link;
}

Topology::Topology(const Cluster& cluster) {
  for (const LinkClass& link : cluster.links) curves_.push_back(link.message);
  for (const NodeClass& node : cluster.nodes) {
    curves_.push_back(node.inside.message);
    for (int i = 0; i < node.count; ++i) {
      first_worker_.push_back(workers());
      node_of_.insert(node_of_.end(), static_cast<std::size_t>(node.workers),
                      static_cast<int>(first_worker_.size()) - 1);
    }
  }
  fabric_ = find_topology(cluster.wiring.kind).make(cluster);
}

Place Topology::place(int worker) const {
  const int node = node_of_[static_cast<std::size_t>(worker)];
  return {worker, node, worker - first_worker_[static_cast<std::size_t>(node)]};
}

void Topology::route(int from, int to, std::vector<int>& out) const {
  out.clear();
  const Place a = place(from), b = place(to);
  if (a.node != b.node) fabric_->route(a, b, out);
}

}  // namespace trireme::cluster
