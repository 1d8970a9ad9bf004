#include "trireme/cli/bench/predict/simulate_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "trireme/base/mix.h"
#include "trireme/cluster/planner/search.h"
#include "trireme/cluster/sim/collective_time.h"
#include "trireme/cluster/sim/flows.h"
#include "trireme/collective/cost/formulas.h"

namespace trireme::bench {
namespace {

using namespace cluster;

constexpr double kAlpha = 2e-5, kRate = 1.25e9, kGamma = 5e-11;  // 10 Gbit/s
constexpr std::size_t kGradient = 25'557'032;                    // elements: ResNet-50's

// As many elements as can be cut into equal parts.
std::size_t multiple_of(int nodes) { return kGradient - kGradient % static_cast<std::size_t>(nodes); }

double uniform(std::uint64_t draw) { return static_cast<double>(mixed(draw) >> 11) * 0x1p-53; }

std::string differs(std::string_view what, double is, double should) {
  if (std::abs(is - should) <= 1e-9 * std::abs(should)) return "";
  return fmt::format("{} is {:.12g} s, not {:.12g}", what, is, should);
}

// A step of synchronous training: everyone computes for 0.3 s and a little, then the gradient goes round the ring.
SimulatedCase ring_iteration(int nodes) {
  Network network(flat_cluster(nodes, kAlpha, kRate, kGamma));
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  std::vector<double> times;
  for (int r = 0; r < nodes; ++r) times.push_back(0.3 + 0.03 * uniform(static_cast<std::uint64_t>(r)));
  const double slowest = *std::max_element(times.begin(), times.end());
  const std::size_t count = multiple_of(nodes);
  const Call call{Collective::all_reduce, 0, nodes, 0, count, count};
  const Played played = play(network, ring, call, sizeof(float), times, times);
  // Whoever comes last has the whole ring before it, and nobody has more.
  const auto form =
      closed_form(call.what, ring.name, {nodes, static_cast<double>(count * sizeof(float)), kAlpha, 1 / kRate, kGamma});
  SimulatedCase result{nodes, played.end_s, differs("the end", played.end_s, slowest + form->time_one.value)};
  if (played.tier != Tier::max_plus) result.wrong = "it was not played";
  return result;
}

Cluster thin_tree(int nodes, int radix) {
  Cluster cluster = flat_cluster(nodes, kAlpha, kRate, kGamma, 0);
  cluster.links[0].shared = true;
  cluster.wiring.kind = "fat-tree";
  cluster.wiring.radix = radix;
  cluster.wiring.levels = 3;
  cluster.wiring.oversubscription = {4, 1};
  return cluster;
}

// Partners up to 16 apart are under one leaf of 32; to those further away a quarter of the rate is left.
SimulatedCase halving_doubling(int nodes) {
  Network network(thin_tree(nodes, 32));
  const Algorithm& algorithm = find_algorithm(Collective::all_reduce, "halving-doubling");
  const std::size_t count = multiple_of(nodes);
  std::vector<double> times(static_cast<std::size_t>(nodes));
  const Call call{Collective::all_reduce, 0, nodes, 0, count, count};
  const Played played = play(network, algorithm, call, sizeof(float), times, times);
  const double bytes = static_cast<double>(count * sizeof(float));
  double expected = 0;
  for (int distance = nodes / 2; distance > 0; distance /= 2) {
    const double size = bytes * distance / nodes, share = distance >= 32 ? 4 : 1;
    expected += 2 * (kAlpha + size / kRate * share) + size * kGamma;
  }
  SimulatedCase result{nodes, played.end_s, differs("the end", played.end_s, expected)};
  if (played.tier != Tier::flows) result.wrong = "it was not played as flows";
  return result;
}

struct RandomFlow {
  double at;
  int from, to;
  double bytes;
};

// Flows of 1 to 64 MB between random hosts, all within 10 ms: many of them at a time on every leaf's thin link.
SimulatedCase random_flows(int nodes) {
  Network network(thin_tree(nodes, 16));
  const int count = nodes * 4000 / 4096;
  std::vector<RandomFlow> sent;
  Traffic traffic;
  for (int i = 0; i < count; ++i) {
    const auto draw = [i](int what) {
      return uniform(static_cast<std::uint64_t>(i) * 4 + static_cast<unsigned>(what));
    };
    const int from = static_cast<int>(draw(0) * nodes), apart = 1 + static_cast<int>(draw(1) * (nodes - 1));
    sent.push_back({0.01 * draw(2), from, (from + apart) % nodes, std::floor(1e6 * std::pow(64.0, draw(3)))});
    traffic.add(network, from, sent.back().to, static_cast<std::uint64_t>(sent.back().bytes));
  }
  Flows flows(network);
  for (int i = 0; i < count; ++i) flows.start(sent[i].at, sent[i].from, sent[i].to, sent[i].bytes, i);
  std::vector<int> ended;
  SimulatedCase result{nodes, 0, ""};
  int slowed = 0;
  for (std::size_t seen = 0; static_cast<int>(seen) < count;) {
    flows.step(ended);
    for (; seen < ended.size(); ++seen) {
      const RandomFlow& flow = sent[ended[seen]];
      const double alone = flow.at + network.message(flow.from, flow.to, flow.bytes);
      if (flows.now() < alone * (1 - 1e-9)) result.wrong = "a flow was faster than alone";
      slowed += flows.now() > alone * 1.05 ? 1 : 0;
    }
  }
  result.simulated_s = flows.now();
  // No link can have carried more than its rate.
  const double busy = traffic.utilisation(network, traffic.busiest(network), flows.now());
  if (busy > 1 + 1e-9) result.wrong = fmt::format("a link carried {:.3f} of what it can", busy);
  if (nodes >= 4096 && slowed < count / 4) result.wrong = fmt::format("only {} flows met others", slowed);
  return result;
}

SimulatedCase plan_search(int) {
  const SearchCase found = run_search_case();
  SimulatedCase result{found.nodes, found.best_step_s, ""};
  if (found.plans < 1000) result.wrong = fmt::format("{} plans were simulated, not 1000", found.plans);
  return result;
}

constexpr std::array kCases{
    SimulateCase{"ring-iteration", 10'000, true, 1, ring_iteration},
    SimulateCase{"halving-doubling-oversubscribed", 8'192, true, 1, halving_doubling},
    SimulateCase{"random-flows", 4'096, true, 4, random_flows},
    SimulateCase{"plan-search", 8, false, 60, plan_search},
};

}  // namespace

std::span<const SimulateCase> simulate_cases() { return kCases; }

}  // namespace trireme::bench
