// The machines a job runs on, as a file says it: classes of nodes, classes of links, how they are wired, who is slow.
// Workers are numbered node by node, the nodes class by class, in the order of the file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/collective/cost/link_model.h"

namespace trireme::cluster {

struct LinkClass {
  std::string name = "link";
  Curve message{5e-5, {}, 8e-9};  // a message of m bytes alone: α = start, then β by size
  bool shared = true;             // messages at one time share its rate fairly; else each has all of it

  // What is shared: the highest rate at which any message goes.
  double bytes_per_s() const;
  bool operator==(const LinkClass&) const = default;
};

struct NodeClass {
  std::string name = "node";
  int count = 1;
  int workers = 1;  // of each node
  int wires = 0;    // messages a node has under way each way at once, the others wait; 0: any number
  int cores = 1;
  double compute = 1;                         // speed relative to the machine of the profile: 2 is twice as fast
  std::uint64_t memory_bytes = 0;             // of a node, shared by its workers; 0: not said
  LinkModel inside;                           // between workers of one node; γ and copying of each
  bool shares_memory = true;                  // workers of one node read each other's memory
  std::uint64_t inline_limit = kInlineLimit;  // bytes: up to here `auto` goes through small slots of shared memory
  double price_per_h = 0;                     // of a node
  int link = 0;                               // what ties it to the network, in Cluster::links

  std::uint64_t worker_memory() const { return memory_bytes / static_cast<std::uint64_t>(workers); }
  bool operator==(const NodeClass&) const = default;
};

struct Straggler {
  enum class Kind : std::uint8_t {
    persistent,  // `workers` always compute `factor` times as long
    transient,   // a `share` of all workers, drawn from the seed, is slow by `factor` for on_s, then well for off_s
                 // (means)
    residuals    // every worker's every step takes a ratio drawn from `ratios` times as long
  };
  Kind kind = Kind::persistent;
  std::vector<int> workers;
  double factor = 1;
  double share = 0;
  double on_s = 0, off_s = 0;
  std::vector<double> ratios;  // measured step times over their median

  bool operator==(const Straggler&) const = default;
};

// How nodes are wired: a member of topology_kinds() and what it is told. Each kind reads only its own.
struct Wiring {
  std::string kind = "flat";
  int radix = 0;                         // fat-tree: nodes under a leaf switch, and switches under each higher one
  int levels = 2;                        // fat-tree: of switches
  std::vector<double> oversubscription;  // fat-tree: by level from the leaves, what comes up over what goes on; or one
  std::vector<int> dims;                 // torus
  double switch_s = 0;                   // latency of each further hop, besides the link's own α, which is paid once

  bool operator==(const Wiring&) const = default;
};

struct Cluster {
  std::string file = "cluster";
  std::uint64_t seed = 1;
  std::vector<NodeClass> nodes;
  std::vector<LinkClass> links;
  Wiring wiring;
  std::vector<Straggler> stragglers;
  Corrections
      corrections;  // of what all this says of whole calls of all workers; those of one node have it in `inside`

  int workers() const;
  int node_count() const;
  // All workers read each other's memory: there is one node, and it does.
  bool shares_memory() const;
  // The class of a worker's node.
  const NodeClass& class_of(int worker) const;
  bool operator==(const Cluster&) const = default;  // `file` too
};

// Throws DataError, one line: file, line, key, what was expected.
Cluster load_cluster(const std::string& path);
Cluster parse_cluster(std::string_view toml, const std::string& file);
// As parse_cluster reads it, with a comment to each key.
std::string to_toml(const Cluster& cluster);

// n nodes of one worker each with a link α + β·m to everyone, γ per byte reduced: what closed forms are about.
Cluster flat_cluster(int nodes, double alpha_s, double bytes_per_s, double gamma = 0, int wires = 1);
// One node whose workers share memory, at the costs of `model`.
Cluster host_cluster(int workers, const LinkModel& model);

}  // namespace trireme::cluster
