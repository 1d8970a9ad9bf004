// cluster.toml, read. docs/clusters.md says what every key means.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/text/json_file.h"
#include "trireme/base/text/toml_table.h"
#include "trireme/base/text/toml_text.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/topology.h"
#include "trireme/collective/schedule.h"

namespace trireme::cluster {
namespace {

constexpr int kMostWorkers = 1 << 20;
constexpr std::uintmax_t kMostFile = 16 << 20;  // bytes

// alpha, beta or bandwidth, points: over what `curve` says.
void read_curve(TomlTable& table, Curve& curve, bool required) {
  if (required && !table.has("alpha")) table.fail("alpha", "the latency of a message, such as \"50us\"");
  curve.start = table.seconds("alpha", curve.start);
  const bool beta = table.has("beta"), bandwidth = table.has("bandwidth");
  if (beta == bandwidth && (beta || required)) table.fail("bandwidth", "either bandwidth, such as \"1gbit\", or beta");
  if (bandwidth) curve.slope = 1 / table.rate("bandwidth", 0);
  curve.slope = table.seconds("beta", curve.slope);
  for (auto [bytes, seconds] : table.points("points")) curve.points.push_back({bytes, seconds});
}

LinkClass read_link(TomlTable table, bool shared) {
  LinkClass link;
  if (!table.has("name")) table.fail("name", "a name of the link, for nodes to refer to");
  link.name = table.word("name", "");
  read_curve(table, link.message, true);
  link.shared = table.flag("shared", shared);
  table.finish();
  return link;
}

LinkModel read_inside(std::optional<TomlTable> table) {
  LinkModel inside;
  if (!table) return inside;
  read_curve(*table, inside.message, false);
  inside.sync = table->seconds("sync", inside.sync);
  if (table->word("wires", "many") != "many") {
    if (table->word("wires", "") != "one") table->fail("wires", "\"one\" or \"many\"");
    inside.wires = Wires::one;
  }
  if (auto memory = table->table("memory")) {
    inside.memory = {};
    read_curve(*memory, inside.memory, true);
    memory->finish();
  }
  table->finish();
  return inside;
}

int link_index(TomlTable& table, const Cluster& cluster) {
  if (!table.has("link")) return 0;
  const std::string name = table.word("link", "");
  std::vector<std::string_view> names;
  for (const LinkClass& link : cluster.links) {
    if (link.name == name) return static_cast<int>(names.size());
    names.push_back(link.name);
  }
  table.fail("link", fmt::format("the name of a [[link]]: {}",
                                 names.empty() ? "there is none" : fmt::to_string(fmt::join(names, ", "))));
}

int read_wires(TomlTable& table, int fallback) {
  if (!table.has("wires")) return fallback;
  try {
    return table.whole("wires", fallback, 1, kMostWorkers);
  } catch (const DataError&) {
    // A word, then.
  }
  bool many = false;
  try {
    many = table.word("wires", "") == "many";
  } catch (const DataError&) {
    many = false;
  }
  if (!many) table.fail("wires", "a whole number from 1, or \"many\"");
  return 0;
}

NodeClass read_node(TomlTable table, const Cluster& cluster) {
  NodeClass node;
  node.name = table.word("name", fmt::format("node-{}", cluster.nodes.size()));
  node.count = table.whole("count", 1, 1, kMostWorkers);
  node.workers = table.whole("workers", 1, 1, kMostWorkers);
  node.cores = table.whole("cores", node.workers, 1, 1 << 20);
  node.compute = table.number("compute", 1, 1e-6, 1e6);
  node.memory_bytes = table.size("memory", 0);
  node.price_per_h = table.number("price_per_h", 0, 0, 1e9);
  node.shares_memory = table.flag("shares_memory", true);
  node.inline_limit = table.size("inline_limit", node.inline_limit);
  node.link = link_index(table, cluster);
  node.wires = read_wires(table, cluster.links.empty() || cluster.links[node.link].shared ? 0 : 1);
  node.inside = read_inside(table.table("inside"));
  node.inside.gamma = table.seconds("gamma", node.inside.gamma);
  node.inside.copy = table.seconds("copy", node.inside.copy);
  if (static_cast<double>(cluster.workers()) + static_cast<double>(node.count) * node.workers > kMostWorkers) {
    table.fail("count", fmt::format("at most {} workers in all", kMostWorkers));
  }
  table.finish();
  return node;
}

Wiring read_wiring(std::optional<TomlTable> table) {
  Wiring wiring;
  if (!table) return wiring;
  wiring.kind = table->word("kind", "flat");
  std::vector<std::string_view> names;
  for (const TopologyKind& kind : topology_kinds()) names.push_back(kind.name);
  if (std::ranges::find(names, wiring.kind) == names.end()) {
    table->fail("kind", fmt::format("one of: {}", fmt::join(names, ", ")));
  }
  if (wiring.kind == "fat-tree") {
    wiring.levels = table->whole("levels", 2, 1, 8);
    if (!table->has("radix")) table->fail("radix", "how many nodes there are under a leaf switch");
    wiring.radix = table->whole("radix", 0, 1, kMostWorkers);
    wiring.oversubscription = table->numbers("oversubscription", 1e-3, 1e6);
  }
  if (wiring.kind == "torus") {
    if (!table->has("dims")) table->fail("dims", "the nodes along each dimension, such as [8, 8]");
    for (double dim : table->numbers("dims", 1, kMostWorkers)) {
      if (dim != static_cast<int>(dim)) table->fail("dims", "whole numbers");
      wiring.dims.push_back(static_cast<int>(dim));
    }
  }
  if (!find_topology(wiring.kind).equal_ways) wiring.switch_s = table->seconds("switch", 0);
  table->finish();
  return wiring;
}

std::vector<int> worker_list(TomlTable& table, int workers) {
  std::vector<int> list;
  for (double worker : table.numbers("workers", 0, workers - 1)) {
    if (worker != static_cast<int>(worker)) table.fail("workers", "whole numbers");
    list.push_back(static_cast<int>(worker));
  }
  if (list.empty()) table.fail("workers", "the numbers of the slow workers, such as [3]");
  return list;
}

Straggler read_straggler(TomlTable table, int workers) {
  Straggler straggler;
  const std::string kind = table.word("kind", "");
  if (kind == "persistent") {
    straggler.workers = worker_list(table, workers);
  } else if (kind == "transient") {
    straggler.kind = Straggler::Kind::transient;
    straggler.share = table.number("share", 0.1, 0, 1);
    straggler.on_s = table.seconds("on", 1);
    straggler.off_s = table.seconds("off", 9);
    if (!(straggler.on_s > 0) || !(straggler.off_s > 0)) table.fail("on", "mean times above 0, for on and off");
  } else if (kind == "residuals") {
    straggler.kind = Straggler::Kind::residuals;
    straggler.ratios = table.numbers("ratios", 1e-3, 1e6);
    if (straggler.ratios.empty()) table.fail("ratios", "step times over their median, such as [0.98, 1, 1.03]");
  } else {
    table.fail("kind", "one of: persistent, transient, residuals");
  }
  if (straggler.kind != Straggler::Kind::residuals) straggler.factor = table.number("factor", 2, 1e-3, 1e6);
  table.finish();
  return straggler;
}

// "all-reduce ring" = [[bytes, measured over predicted], …]
Corrections read_corrections(std::optional<TomlTable> table) {
  if (!table) return {};
  Corrections corrections(table->whole("ranks", 0, 1, kMostWorkers));
  for (const Algorithm& algorithm : algorithms()) {
    const std::string key = fmt::format("{} {}", name(algorithm.what), algorithm.name);
    for (auto [bytes, ratio] : table->points(key)) {
      if (!(ratio > 0)) table->fail(key, "[[bytes, measured over predicted], …], all above 0");
      corrections.add(algorithm.what, algorithm.name, bytes, ratio);
    }
  }
  table->finish();
  return corrections;
}

Cluster read_cluster(TomlTable root, const std::string& file) {
  Cluster cluster;
  cluster.file = file;
  cluster.seed = root.seed("seed", 1);
  cluster.wiring = read_wiring(root.table("topology"));
  const bool shared = find_topology(cluster.wiring.kind).shared;
  for (TomlTable& link : root.tables("link")) cluster.links.push_back(read_link(std::move(link), shared));
  auto nodes = root.tables("node");
  if (nodes.empty()) root.fail("node", "at least one [[node]]");
  for (TomlTable& node : nodes) cluster.nodes.push_back(read_node(std::move(node), cluster));
  if (cluster.links.empty()) {
    if (cluster.node_count() > 1) root.fail("link", "a [[link]] between the nodes");
    cluster.links.emplace_back();
  }
  for (TomlTable& straggler : root.tables("straggler")) {
    cluster.stragglers.push_back(read_straggler(std::move(straggler), cluster.workers()));
  }
  cluster.corrections = read_corrections(root.table("corrections"));
  if (cluster.node_count() == 1) cluster.nodes[0].inside.corrections = cluster.corrections;
  try {
    Topology fits(cluster);
  } catch (const ConfigError& error) {
    root.fail("topology", error.what());
  }
  root.finish();
  return cluster;
}

}  // namespace

Cluster parse_cluster(std::string_view text, const std::string& file) {
  const toml::table root = parse_toml(text, file);
  return read_cluster(TomlTable(file, root, ""), file);
}

Cluster load_cluster(const std::string& path) { return parse_cluster(read_text(path, kMostFile), path); }

}  // namespace trireme::cluster
