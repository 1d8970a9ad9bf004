// Who is wired to whom: directed links and the route between two workers. Routes are computed when asked for and none
// is kept, so that ten thousand nodes cost a few links each.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cluster/cluster.h"

namespace trireme::cluster {

struct Link {
  int curve = 0;           // in Topology::curves(): how fast one message goes
  double bytes_per_s = 0;  // what messages share
  double latency_s = 0;    // paid by a message that crosses it
  bool shared = true;
};

// Where a worker is.
struct Place {
  int worker = 0, node = 0, slot = 0;  // slot: number within its node
};

// Links and routes of one kind of topology.
class Fabric {
 public:
  virtual ~Fabric() = default;
  const std::vector<Link>& links() const { return links_; }
  virtual std::string link_name(int link) const = 0;
  // Appends the links from one node to another, in order.
  virtual void route(const Place& from, const Place& to, std::vector<int>& out) const = 0;
  // Messages can slow each other down even where no worker sends or receives two at once.
  virtual bool blocking() const = 0;

 protected:
  std::vector<Link> links_;
};

// A line in the list in topology.cpp.
struct TopologyKind {
  std::string_view name;
  std::string_view summary;
  bool shared;      // whether its links are, unless the file says
  bool equal_ways;  // from every node to every other, through nothing that takes time of its own
  std::unique_ptr<Fabric> (*make)(const Cluster&);
};
std::span<const TopologyKind> topology_kinds();
// Throws ConfigError that lists the kinds.
const TopologyKind& find_topology(std::string_view name);

class Topology {
 public:
  // Throws ConfigError where the wiring does not fit the nodes.
  explicit Topology(const Cluster& cluster);

  int workers() const { return static_cast<int>(node_of_.size()); }
  Place place(int worker) const;
  std::span<const Link> links() const { return fabric_->links(); }
  std::string link_name(int link) const { return fabric_->link_name(link); }
  // Those of Cluster::links, then the insides of Cluster::nodes.
  std::span<const Curve> curves() const { return curves_; }
  // Replaces `out` by the links a message crosses; none within a node.
  void route(int from, int to, std::vector<int>& out) const;
  bool blocking() const { return fabric_->blocking(); }

 private:
  std::vector<int> node_of_;       // by worker
  std::vector<int> first_worker_;  // by node
  std::vector<Curve> curves_;
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace trireme::cluster
