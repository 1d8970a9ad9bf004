#include "trireme/report/prediction/cluster_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "trireme/base/available_memory.h"
#include "trireme/base/clock.h"
#include "trireme/base/cores.h"
#include "trireme/cluster/sim/collective_time.h"
#include "trireme/collective/cost/tuning.h"
#include "trireme/collective/schedule.h"
#include "trireme/grad/spare_core.h"
#include "trireme/grad/timings.h"
#include "trireme/net/emulated_network.h"

namespace trireme::train {
namespace {

const Algorithm& algorithm_of(const cluster::Network& network, std::string_view name, std::size_t elements, int ranks) {
  if (name == "auto" || name.empty()) {
    return cluster::pick_algorithm(network, Collective::all_reduce, elements, sizeof(float), ranks);
  }
  return find_algorithm(Collective::all_reduce, name);
}

double seconds_of(const cluster::Network& network, std::string_view algorithm, double bytes) {
  const int ranks = network.ranks();
  const auto elements = std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / sizeof(float));
  return cluster::play(network, algorithm_of(network, algorithm, elements, ranks),
                       {.what = Collective::all_reduce, .ranks = ranks, .count = elements}, sizeof(float));
}

void scale(Curve& curve, double latency, double slope) {
  const double start = curve.start;
  curve.start = latency * start;
  for (auto& point : curve.points) point.seconds = curve.start + slope * (point.seconds - start);
  curve.slope *= slope;
}

cluster::Cluster scaled(cluster::Cluster cluster, double latency, double slope) {
  for (auto& node : cluster.nodes) {
    scale(node.inside.message, latency, slope);
    scale(node.inside.memory, latency, slope);
    node.inside.sync *= latency;
    node.inside.gamma *= slope;
    node.inside.copy *= slope;
  }
  for (auto& link : cluster.links) scale(link.message, latency, slope);
  return cluster;
}

// Of the logarithms of predicted over measured. The largest, which is most like a gradient, counts for far more than
// all others: where short messages pass at once, as the first of an emulated link do, they would have the rate too
// high.
double squares(const cluster::Cluster& cluster, std::string_view algorithm, const MeasuredExchange& measured) {
  const cluster::Network network(cluster);
  double sum = 0;
  for (auto [bytes, seconds] : measured.all_reduce) {
    const double off = std::log(std::max(1e-9, seconds_of(network, algorithm, bytes)) / std::max(1e-9, seconds));
    const bool largest = bytes == measured.all_reduce.back().first;
    const auto count = static_cast<double>(measured.all_reduce.size());
    sum += (largest ? count * count : 1) * off * off;
  }
  return sum;
}

LinkModel model_of(std::string_view transport) {
  const auto tuned = load_tuning(transport);
  return (tuned ? *tuned : default_tuning(transport)).model;
}

}  // namespace

cluster::Cluster cluster_here(const Config& config, std::string_view transport, int workers) {
  const bool shares_memory = transport != "tcp";
  auto cluster = cluster::host_cluster(workers, model_of(shares_memory ? "shm" : "tcp"));
  cluster.file = "this run";
  cluster.seed = static_cast<std::uint64_t>(config.seed);
  auto& node = cluster.nodes.front();
  node.cores = std::max(1, usable_cores());  // of an emulated host those that are its own
  node.shares_memory = shares_memory;
  node.memory_bytes = available_memory().value_or(0);
  if (shares_memory) return cluster;

  const auto network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
  const int hosts = network.hosts > 0
                        ? network.hosts
                        : std::max(1, workers / static_cast<int>(std::max<std::int64_t>(1, config.workers)));
  if (hosts == 1) return cluster;
  node.count = hosts;
  node.workers = std::max(1, workers / hosts);
  auto& link = cluster.links.front();
  link.message = node.inside.message;
  link.shared = true;
  link.message.start += network.latency_s;
  if (network.bits_per_s > 0) {
    constexpr double kPayload = 1448.0 / 1514;  // of a frame: docs/emulated-hosts.md
    const double least = 8.0 / kPayload / static_cast<double>(network.bits_per_s);
    link.message.points.clear();
    link.message.slope = std::max(link.message.slope, least);
  }
  cluster.wiring.kind = "star";
  return cluster;
}

MeasuredExchange measure_exchange(const Config& config, Communicator& world, std::size_t gradient_bytes) {
  MeasuredExchange measured;
  if (world.size() == 1) {
    measured.pack_s_per_byte = grad::pack_s_per_byte(gradient_bytes);
    return measured;
  }
  // On a slow network the largest size is one that takes a few hundredths of a second.
  constexpr double kLongest = 0.02;
  const cluster::Network expected(cluster_here(config, world.transport(), world.size()));
  std::size_t most = std::clamp<std::size_t>(gradient_bytes, 4096, 4 << 20);
  while (most > 4096 && seconds_of(expected, config.algorithm, static_cast<double>(most)) > kLongest) most /= 2;
  std::vector<std::int64_t> agreed{static_cast<std::int64_t>(most)};
  world.broadcast(agreed);  // hosts may be tuned differently
  most = static_cast<std::size_t>(agreed[0]);

  const auto turn = grad::turn_for(world, 0);
  const bool spare = turn == sync::Turn::background && grad::has_spare_core(world, 0);
  const auto costs = grad::measure_costs(world, turn, spare, most);
  for (std::size_t bytes = 256; bytes <= most; bytes *= 8) {
    measured.all_reduce.emplace_back(static_cast<double>(bytes), costs.all_reduce(bytes));
  }
  measured.theft = costs.theft;
  measured.pack_s_per_byte = costs.pack_s_per_byte;
  return measured;
}

void fit(cluster::Cluster& cluster, std::string_view algorithm, const MeasuredExchange& measured) {
  if (measured.all_reduce.empty() || cluster.workers() > kMostFitted) return;
  std::array<double, 2> factors{1, 1};  // of latencies, of seconds per byte
  double best = squares(cluster, algorithm, measured);
  for (double step : {4.0, 2.0, 1.4, 1.2, 1.1, 1.05, 1.02}) {
    for (bool better = true; better;) {
      better = false;
      for (double& factor : factors) {
        for (double by : {step, 1 / step}) {
          const double before = std::exchange(factor, factor * by);
          const double off = squares(scaled(cluster, factors[0], factors[1]), algorithm, measured);
          if (off < best - 1e-12) {
            best = off;
            better = true;
          } else {
            factor = before;
          }
        }
      }
    }
  }
  cluster = scaled(std::move(cluster), factors[0], factors[1]);
}

}  // namespace trireme::train
