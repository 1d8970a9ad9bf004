// The machines that a run is on, as a cluster: from the tuning of this machine, and from a few all-reduces between the
// run's own workers.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "trireme/cluster/cluster.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/train/config/config.h"

namespace trireme::train {

constexpr int kMostFitted = 64;  // workers: above, playing an exchange often would take long

struct MeasuredExchange {
  std::vector<std::pair<double, double>> all_reduce;  // bytes, seconds; ascending
  double theft = 0;                                   // θ: what compute loses of a second of it in the background
  double pack_s_per_byte = 0;
};
// Some milliseconds: sizes up to that of the gradient, fewer where the network is slow. Collective.
MeasuredExchange measure_exchange(const Config& config, Communicator& world, std::size_t gradient_bytes);

// `workers` of this run: on this host, or spread over the hosts it emulates, or over those that --workers says how many
// are on each. By the tuning, or its defaults.
cluster::Cluster cluster_here(const Config& config, std::string_view transport, int workers);
// Latencies and rates of the cluster are scaled, each by one factor, so that all-reduces take what was measured, as
// well as that can be.
void fit(cluster::Cluster& cluster, std::string_view algorithm, const MeasuredExchange& measured);

}  // namespace trireme::train
