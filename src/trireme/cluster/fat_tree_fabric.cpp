// Fat tree. Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing", 1985. R nodes under a
// leaf switch, R switches under each higher one, L levels of switches; the top is one ideal switch.
//   a switch of level l = 1…L−1 has a link up and one down; each stands for all its parallel cables, taken as evenly
//   loaded, and carries what R^l nodes send at full rate over the product of the oversubscriptions up to l
//   a message climbs to the lowest switch that both ends are under, and down again
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/cluster/fabrics.h"

namespace trireme::cluster {
namespace {

class FatTree : public Fabric {
 public:
  explicit FatTree(const Cluster& cluster) : radix_(cluster.wiring.radix), nodes_(cluster.node_count()) {
    const Wiring& wiring = cluster.wiring;
    if (std::pow(radix_, wiring.levels) < nodes_) {
      throw ConfigError(fmt::format("radix and levels with radix^levels at least {}, the number of nodes, not {}^{}",
                                    nodes_, radix_, wiring.levels));
    }
    if (wiring.oversubscription.size() > 1 && static_cast<int>(wiring.oversubscription.size()) != wiring.levels - 1) {
      throw ConfigError(
          fmt::format("one oversubscription, or {}: one for each level below the top", wiring.levels - 1));
    }
    add_nodes(cluster);
    add_switches(wiring);
  }

  std::string link_name(int link) const override {
    if (link < 2 * nodes_) return fmt::format("{} node {}", link % 2 == 0 ? "from" : "to", link / 2);
    std::size_t level = 0;
    while (level + 1 < first_.size() && link >= first_[level + 1]) ++level;
    const int switch_ = (link - first_[level]) / 2;
    return fmt::format("{} switch {} of level {}", (link - first_[level]) % 2 == 0 ? "up from" : "down to", switch_,
                       level + 1);
  }

  void route(const Place& from, const Place& to, std::vector<int>& out) const override {
    out.push_back(2 * from.node);
    int a = from.node / radix_, b = to.node / radix_;
    std::size_t level = 0;
    for (; a != b; a /= radix_, b /= radix_) out.push_back(first_[level++] + 2 * a);
    b = to.node;
    const auto top = out.size();
    for (std::size_t l = 0; l < level; ++l) {
      b /= radix_;
      out.push_back(first_[l] + 2 * b + 1);
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(top), out.end());
    out.push_back(2 * to.node + 1);
  }
  bool blocking() const override { return blocking_; }

 private:
  void add_nodes(const Cluster& cluster) {
    for (const NodeClass& node : cluster.nodes) {
      for (int i = 0; i < node.count; ++i) {
        links_.push_back(up_link(cluster, node.link));
        links_.push_back(down_link(cluster, node.link));
        if (links_.back().bytes_per_s > widest_.bytes_per_s) widest_ = links_.back();
        blocking_ |= node.workers > 1;
      }
    }
  }
  void add_switches(const Wiring& wiring) {
    double under = 1, share = 1;  // nodes under a switch; of what they send, what goes on
    for (int level = 1; level < wiring.levels; ++level) {
      under *= radix_;
      const auto& given = wiring.oversubscription;
      if (!given.empty()) share /= given[std::min(given.size(), static_cast<std::size_t>(level)) - 1];
      blocking_ |= share < 1;
      first_.push_back(static_cast<int>(links_.size()));
      Link link{widest_.curve, widest_.bytes_per_s * under * share, wiring.switch_s, true};
      const int switches = static_cast<int>(std::ceil(nodes_ / under));
      for (int i = 0; i < switches; ++i) {
        links_.push_back(link);
        links_.push_back(link);
        links_.back().latency_s = 0;
      }
    }
  }

  int radix_, nodes_;
  std::vector<int> first_;  // by level from 1: its first link; a switch has one up, then one down
  Link widest_;
  bool blocking_ = false;
};

}  // namespace

std::unique_ptr<Fabric> fat_tree_fabric(const Cluster& cluster) { return std::make_unique<FatTree>(cluster); }

}  // namespace trireme::cluster
