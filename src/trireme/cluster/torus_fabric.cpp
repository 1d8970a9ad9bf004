// Torus and ring: nodes at the points of a grid that is closed in every dimension, with a link each way to both
// neighbours along each. A message takes the dimensions in their order and in each the shorter way round, the
// ascending one where both are as long. α is paid where it leaves its node, the hop's latency on every link.
#include <fmt/format.h>

#include <numeric>

#include "trireme/base/error.h"
#include "trireme/cluster/fabrics.h"

namespace trireme::cluster {
namespace {

class Torus : public Fabric {
 public:
  Torus(const Cluster& cluster, std::vector<int> dims) : dims_(std::move(dims)), nodes_(cluster.node_count()) {
    const double product = std::accumulate(dims_.begin(), dims_.end(), 1.0, std::multiplies<>());
    if (product != nodes_) {
      throw ConfigError(fmt::format("dims whose product is {}, the number of nodes, not {:g}", nodes_, product));
    }
    std::vector<Link> hops;
    for (const NodeClass& node : cluster.nodes) {
      Link way_out = up_link(cluster, node.link), hop = way_out;
      way_out.shared = false;
      hop.latency_s = cluster.wiring.switch_s;
      links_.insert(links_.end(), static_cast<std::size_t>(node.count), way_out);
      hops.insert(hops.end(), static_cast<std::size_t>(node.count) * 2 * dims_.size(), hop);
      blocking_ |= hop.shared;
    }
    links_.insert(links_.end(), hops.begin(), hops.end());
  }

  std::string link_name(int link) const override {
    if (link < nodes_) return fmt::format("out of node {}", link);
    const int i = link - nodes_, D = static_cast<int>(dims_.size());
    return fmt::format("node {} {}{}", i / 2 / D, i % 2 == 0 ? '+' : '-', i / 2 % D);
  }

  void route(const Place& from, const Place& to, std::vector<int>& out) const override {
    const int D = static_cast<int>(dims_.size());
    out.push_back(from.node);
    int at = from.node, step = 1;
    for (int d = 0; d < D; ++d) {
      const int size = dims_[static_cast<std::size_t>(d)];
      int here = at / step % size;
      const int ahead = (to.node / step % size - here + size) % size;
      const bool up = 2 * ahead <= size;
      for (int hops = up ? ahead : size - ahead; hops > 0; --hops) {
        out.push_back(nodes_ + 2 * (at * D + d) + (up ? 0 : 1));
        const int next = (here + (up ? 1 : size - 1)) % size;
        at += (next - here) * step;
        here = next;
      }
      step *= size;
    }
  }
  bool blocking() const override { return blocking_; }

 private:
  std::vector<int> dims_;
  int nodes_;
  bool blocking_ = false;
};

}  // namespace

std::unique_ptr<Fabric> torus_fabric(const Cluster& cluster) {
  return std::make_unique<Torus>(cluster, cluster.wiring.dims);
}
std::unique_ptr<Fabric> ring_fabric(const Cluster& cluster) {
  return std::make_unique<Torus>(cluster, std::vector{cluster.node_count()});
}

}  // namespace trireme::cluster
