#include "trireme/cluster/cluster.h"

#include <algorithm>
#include <limits>

#include "trireme/base/error.h"

namespace trireme::cluster {

double LinkClass::bytes_per_s() const {
  double best = message.slope > 0 ? 1 / message.slope : std::numeric_limits<double>::infinity();
  for (const auto& point : message.points) {
    if (point.seconds > message.start) best = std::max(best, point.bytes / (point.seconds - message.start));
  }
  return best;
}

int Cluster::workers() const {
  int all = 0;
  for (const NodeClass& node : nodes) all += node.count * node.workers;
  return all;
}

int Cluster::node_count() const {
  int all = 0;
  for (const NodeClass& node : nodes) all += node.count;
  return all;
}

bool Cluster::shares_memory() const { return node_count() == 1 && nodes.front().shares_memory; }

const NodeClass& Cluster::class_of(int worker) const {
  for (const NodeClass& node : nodes) {
    if (worker < node.count * node.workers) return node;
    worker -= node.count * node.workers;
  }
  throw Error("there is no worker of this number in " + file);
}

Cluster flat_cluster(int nodes, double alpha_s, double bytes_per_s, double gamma, int wires) {
  Cluster cluster;
  cluster.links.push_back({"link", {alpha_s, {}, 1 / bytes_per_s}, false});
  NodeClass node;
  node.count = nodes;
  node.wires = wires;
  node.inside.gamma = gamma;
  node.shares_memory = false;
  cluster.nodes.push_back(node);
  return cluster;
}

Cluster host_cluster(int workers, const LinkModel& model) {
  Cluster cluster;
  cluster.links.emplace_back();
  NodeClass node;
  node.name = "host";
  node.workers = workers;
  node.inside = model;
  cluster.corrections = model.corrections;
  cluster.nodes.push_back(node);
  return cluster;
}

}  // namespace trireme::cluster
