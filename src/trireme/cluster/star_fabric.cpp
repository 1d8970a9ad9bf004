// Flat and star: every node has a link to one switch and a link from it. Links of a star are shared by what its node
// sends, or receives, at one time; those of a flat network, unless the file says so, carry any number at full speed.
#include <fmt/format.h>

#include "trireme/cluster/fabrics.h"

namespace trireme::cluster {
namespace {

class Star : public Fabric {
 public:
  explicit Star(const Cluster& cluster) {
    for (const NodeClass& node : cluster.nodes) {
      for (int i = 0; i < node.count; ++i) {
        links_.push_back(up_link(cluster, node.link));
        links_.push_back(down_link(cluster, node.link));
        blocking_ |= node.workers > 1 && links_.back().shared;
      }
    }
  }

  std::string link_name(int link) const override {
    return fmt::format("{} node {}", link % 2 == 0 ? "from" : "to", link / 2);
  }
  void route(const Place& from, const Place& to, std::vector<int>& out) const override {
    out.push_back(2 * from.node);
    out.push_back(2 * to.node + 1);
  }
  bool blocking() const override { return blocking_; }

 private:
  bool blocking_ = false;
};

}  // namespace

std::unique_ptr<Fabric> star_fabric(const Cluster& cluster) { return std::make_unique<Star>(cluster); }

}  // namespace trireme::cluster
