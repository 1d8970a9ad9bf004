// Parameter servers with so many workers that following P² messages a step would take long.
//
// Colocated servers keep a share of the model each. In a step every node's link carries what its worker pushes and what
// its server answers one way, and what the others push and answer the other way: twice the model but for its own share.
// A push waits for the server on the slowest link, or for the link of the fabric with most to carry. Servers of their
// own carry the workers' twice the model between them.
#include <algorithm>

#include "trireme/cluster/sim/job/simulation.h"

namespace trireme::cluster {
namespace {

// Twice `bytes` over the slowest way out or in of any class of node.
double over_links(const Network& network, double bytes, double& latency) {
  double longest = 0;
  const NodeClass* last = nullptr;
  for (int rank = 0; rank < network.ranks(); ++rank) {
    if (&network.node(rank) == last) continue;
    last = &network.node(rank);
    for (int peer : {(rank + 1) % network.ranks(), (rank + network.ranks() / 2) % network.ranks()}) {
      if (peer == rank) continue;
      for (const auto& [from, to] : {std::pair(rank, peer), std::pair(peer, rank)}) {
        const double alone = network.latency(from, to);
        latency = std::max(latency, alone);
        longest = std::max(longest, 2 * (network.message(from, to, bytes) - alone));
      }
    }
  }
  return longest;
}

}  // namespace

Simulated simulate_servers(Simulation& simulation, ps::Consistency consistency) {
  const auto& profile = simulation.profile;
  const auto code = simulation.coding.message();
  const bool coded = !simulation.coding.none();
  const double ranks = simulation.ranks;
  const double bytes = coded ? code.bytes : simulation.model_bytes;
  const double most = simulation.job.servers > 0 ? std::max(1.0, ranks / simulation.job.servers) : (ranks - 1) / ranks;
  double latency = 0;
  double bandwidth = over_links(simulation.network, bytes * most, latency);
  if (simulation.job.servers == 0 && simulation.network.topology().blocking()) {  // everyone's share to everyone, twice
    bandwidth = std::max(bandwidth, 2 * bytes / ranks * simulation.network.pair_loads().shared_s);
  }
  const double servers = simulation.job.servers > 0 ? simulation.job.servers : ranks;
  const double update = profile.update_s_per_byte > 0 ? profile.update_s_per_byte : 2.5 * profile.pack_s_per_byte;
  const double share = simulation.model_bytes / servers;
  const double served = share * (ranks * profile.pack_s_per_byte / 2 + (consistency.async ? ranks : 1) * update);
  const double coding = coded ? (code.encode_s + code.decode_s) * (1 + ranks / servers) : 0;
  const double exchange = 2 * latency + bandwidth + served + coding;
  const auto exchange_plan = simulation.job.strategy.exchange_plan(simulation.at(0, simulation.warm));
  const double laid_out = simulation.laid_out(exchange_plan);

  Simulated result;
  result.tier = Tier::max_plus;
  result.workers.resize(static_cast<std::size_t>(simulation.ranks));
  double now = 0, rate = 0;
  for (std::int64_t step = 0; step < simulation.steps; ++step) {
    double slowest = 0;
    for (int rank = 0; rank < simulation.ranks; ++rank) {
      const double factor = simulation.pace.factor(rank, step, now);
      auto& worker = result.workers[static_cast<std::size_t>(rank)];
      worker.compute_s += (simulation.cost.forward + simulation.cost.backward) * factor;
      worker.wait_s += exchange;
      worker.bytes_sent += static_cast<std::uint64_t>(2 * bytes);
      ++worker.steps;
      slowest = std::max(slowest, factor);
      rate += 1 / ((simulation.cost.forward + simulation.cost.backward + simulation.cost.other) * factor + exchange);
      if (rank == 0) {
        result.breakdown_s.forward += simulation.cost.forward * factor;
        result.breakdown_s.backward += simulation.cost.backward * factor;
        result.breakdown_s.other += simulation.cost.other * factor + laid_out;
      }
    }
    now += (simulation.cost.forward + simulation.cost.backward + simulation.cost.other) * slowest + exchange;
    result.step_ends.push_back(now);
    result.breakdown_s.communication += exchange;
    result.breakdown_s.exposed += exchange;
    result.exchange_s.latency += 2 * latency;
    result.exchange_s.bandwidth += bandwidth + served;
    result.exchange_s.coding += coding;
  }
  const auto steps = static_cast<double>(simulation.steps);
  result.step_s = (consistency.async ? ranks * steps / rate : now / steps) + laid_out;
  return result;
}

}  // namespace trireme::cluster
