// cluster.toml, written. Numbers are exact: what is read back is the same cluster.
#include <fmt/format.h>

#include "trireme/base/text/size.h"
#include "trireme/cluster/cluster.h"
#include "trireme/collective/schedule.h"

namespace trireme::cluster {
namespace {

// A text in quotes as TOML has it.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// The shortest that is read back as the same number.
std::string exact(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
std::string exact(const std::vector<double>& values) {
  std::string text;
  for (double value : values) text += (text.empty() ? "" : ", ") + exact(value);
  return text;
}

std::string curve_text(const Curve& curve) {
  std::string out = fmt::format("alpha = {}    # seconds before the first byte: {}\n", exact(curve.start),
                                format_seconds(curve.start));
  out += fmt::format("beta = {}    # seconds per byte of long messages", exact(curve.slope));
  out += curve.slope > 0 ? fmt::format(": {:.4g} GB/s\n", 1e-9 / curve.slope) : "\n";
  if (curve.points.empty()) return out;
  out += "points = [    # [bytes, seconds] of shorter ones\n";
  for (const auto& point : curve.points) out += fmt::format("  [{}, {}],\n", exact(point.bytes), exact(point.seconds));
  return out + "]\n";
}

// One node talks to no other.
bool has_links(const Cluster& cluster) {
  return cluster.node_count() > 1 || cluster.links != std::vector{LinkClass{}} || cluster.nodes.front().wires != 0;
}

std::string node_text(const NodeClass& node, const Cluster& cluster) {
  std::string out = fmt::format("\n[[node]]\nname = {}\ncount = {}\n", toml_text(node.name), node.count);
  out += fmt::format("workers = {}    # of each node\n", node.workers);
  out += fmt::format("cores = {}\n", node.cores);
  out += fmt::format("compute = {}    # speed relative to the machine of the profile\n", exact(node.compute));
  if (node.memory_bytes > 0) out += fmt::format("memory = {}    # bytes of a node\n", node.memory_bytes);
  if (node.price_per_h > 0) out += fmt::format("price_per_h = {}\n", exact(node.price_per_h));
  if (has_links(cluster)) {
    out += fmt::format("link = {}\n", toml_text(cluster.links[node.link].name));
    out += node.wires == 0 ? "wires = \"many\"    # messages under way each way at once\n"
                           : fmt::format("wires = {}    # messages under way each way at once\n", node.wires);
  }
  out += fmt::format("gamma = {}    # seconds per byte reduced\n", exact(node.inside.gamma));
  out += fmt::format("copy = {}    # seconds per byte copied\n", exact(node.inside.copy));
  out += fmt::format("shares_memory = {}    # its workers read each other's memory\n", node.shares_memory);
  out += fmt::format("inline_limit = {}    # bytes: shorter calls go through small slots\n", node.inline_limit);
  out += "\n[node.inside]    # between workers of one node\n" + curve_text(node.inside.message);
  out += fmt::format("sync = {}    # seconds of one synchronization of all of them\n", exact(node.inside.sync));
  out += fmt::format("wires = \"{}\"\n", node.inside.wires == Wires::one ? "one" : "many");
  out +=
      "\n[node.inside.memory]    # bytes loaded and stored by each of them at once\n" + curve_text(node.inside.memory);
  return out;
}

std::string wiring_text(const Wiring& wiring) {
  std::string out = fmt::format("\n[topology]\nkind = {}\n", toml_text(wiring.kind));
  if (wiring.kind == "fat-tree") {
    out += fmt::format("radix = {}    # nodes under a leaf switch, switches under a higher one\n", wiring.radix);
    out += fmt::format("levels = {}\n", wiring.levels);
    if (!wiring.oversubscription.empty()) {
      out += fmt::format("oversubscription = [{}]\n", exact(wiring.oversubscription));
    }
  }
  if (wiring.kind == "torus") out += fmt::format("dims = [{}]\n", fmt::join(wiring.dims, ", "));
  if (wiring.switch_s > 0) out += fmt::format("switch = {}    # seconds of each further hop\n", exact(wiring.switch_s));
  return out;
}

std::string straggler_text(const Straggler& straggler) {
  switch (straggler.kind) {
    case Straggler::Kind::persistent:
      return fmt::format("\n[[straggler]]\nkind = \"persistent\"\nworkers = [{}]\nfactor = {}\n",
                         fmt::join(straggler.workers, ", "), exact(straggler.factor));
    case Straggler::Kind::transient:
      return fmt::format("\n[[straggler]]\nkind = \"transient\"\nshare = {}\non = {}\noff = {}\nfactor = {}\n",
                         exact(straggler.share), exact(straggler.on_s), exact(straggler.off_s),
                         exact(straggler.factor));
    case Straggler::Kind::residuals:
      return fmt::format("\n[[straggler]]\nkind = \"residuals\"\nratios = [{}]\n", exact(straggler.ratios));
  }
  return "";
}

std::string corrections_text(const Corrections& corrections) {
  if (corrections.empty()) return "";
  std::string out = fmt::format(
      "\n[corrections]    # what whole calls took over what all of the above says: [bytes, ratio]\nranks = {}\n",
      corrections.ranks());
  for (const Algorithm& algorithm : algorithms()) {
    std::string points;
    for (auto [bytes, ratio] : corrections.points(algorithm.what, algorithm.name)) {
      points += fmt::format("{}[{}, {}]", points.empty() ? "" : ", ", exact(bytes), exact(ratio));
    }
    if (!points.empty()) out += fmt::format("\"{} {}\" = [{}]\n", name(algorithm.what), algorithm.name, points);
  }
  return out;
}

}  // namespace

std::string to_toml(const Cluster& cluster) {
  std::string out = fmt::format("seed = {}\n", cluster.seed);
  for (const LinkClass& link : has_links(cluster) ? cluster.links : std::vector<LinkClass>{}) {
    out += fmt::format("\n[[link]]\nname = {}\n{}shared = {}    # messages at one time share its rate\n",
                       toml_text(link.name), curve_text(link.message), link.shared);
  }
  for (const NodeClass& node : cluster.nodes) out += node_text(node, cluster);
  if (cluster.wiring != Wiring{}) out += wiring_text(cluster.wiring);
  for (const Straggler& straggler : cluster.stragglers) out += straggler_text(straggler);
  return out + corrections_text(cluster.corrections);
}

}  // namespace trireme::cluster
