// Rails: worker s of every node has a link of its own to switch s. A message to a worker on another rail first goes,
// inside its node, to the neighbour that is on that rail.
#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/cluster/fabrics.h"

namespace trireme::cluster {
namespace {

class Rails : public Fabric {
 public:
  explicit Rails(const Cluster& cluster) : workers_(cluster.workers()), rails_(cluster.nodes.front().workers) {
    std::vector<Link> insides;
    for (std::size_t c = 0; c < cluster.nodes.size(); ++c) {
      const NodeClass& node = cluster.nodes[c];
      if (node.workers != rails_) {
        throw ConfigError(fmt::format("rails: as many workers in every node, not {} and {}", rails_, node.workers));
      }
      const Curve& inside = node.inside.message;
      const Link hop{static_cast<int>(cluster.links.size() + c), LinkClass{"inside", inside, true}.bytes_per_s(),
                     inside.start, true};
      insides.insert(insides.end(), static_cast<std::size_t>(node.count), hop);
      for (int i = 0; i < node.count * node.workers; ++i) {
        links_.push_back(up_link(cluster, node.link));
        links_.push_back(down_link(cluster, node.link));
      }
    }
    links_.insert(links_.end(), insides.begin(), insides.end());
  }

  std::string link_name(int link) const override {
    if (link >= 2 * workers_) return fmt::format("inside node {}", link - 2 * workers_);
    const int worker = link / 2;
    return fmt::format("{} node {} on rail {}", link % 2 == 0 ? "from" : "to", worker / rails_, worker % rails_);
  }
  void route(const Place& from, const Place& to, std::vector<int>& out) const override {
    if (from.slot != to.slot) out.push_back(2 * workers_ + from.node);
    out.push_back(2 * (from.node * rails_ + to.slot));
    out.push_back(2 * to.worker + 1);
  }
  bool blocking() const override { return rails_ > 1; }

 private:
  int workers_, rails_;
};

}  // namespace

std::unique_ptr<Fabric> rail_fabric(const Cluster& cluster) { return std::make_unique<Rails>(cluster); }

}  // namespace trireme::cluster
