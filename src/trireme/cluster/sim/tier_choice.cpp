// Whether max-plus is exact: it is where no two messages that are under way at once share a link that cannot carry
// both. A rank is in one round at a time, so where it has one message each way in a round it has one at a time.
#include <algorithm>
#include <set>

#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/round_work.h"

namespace trireme::cluster {
namespace {

constexpr std::size_t kFewDistances = 4;
constexpr double kLoadSlack = 1e-9;  // relative

bool any_link_is_shared(const Network& network) {
  return std::ranges::any_of(network.topology().links(), [](const Link& link) { return link.shared; });
}

bool one_each_way(const Playing& playing) {
  RoundReader reader(playing.algorithm, playing.shape, playing.element);
  for (int rank = 0; rank < playing.shape.ranks; ++rank) {
    const Schedule schedule = reader.schedule(rank);
    for (int k = 0; k < schedule.rounds; ++k) {
      const RoundWork& work = reader.read(schedule, rank, k);
      if (work.sent.peers().size() > 1 || work.received.peers().size() > 1) return false;
    }
  }
  return true;
}

// The distances of all rounds, or none if there are many.
std::set<int> few_distances(const Schedule& schedule, int ranks) {
  std::set<int> found;
  for (int k = 0; k < schedule.rounds && found.size() <= kFewDistances; ++k) {
    found.insert((schedule.shift(k).distance % ranks + ranks) % ranks);
  }
  found.erase(0);
  return found.size() <= kFewDistances ? found : std::set<int>{};
}

// Every rank sends over every one of these distances at full speed at once.
bool links_carry(const Playing& playing, const std::set<int>& distances, double bytes) {
  const Network& network = playing.network;
  const auto links = network.topology().links();
  std::vector<double> load(links.size());
  std::vector<int> route;
  for (int distance : distances) {
    for (int from = 0; from < playing.shape.ranks; ++from) {
      const int to = (from + distance) % playing.shape.ranks;
      network.topology().route(network.worker(from), network.worker(to), route);
      const double rate = bytes / std::max(network.message(from, to, bytes) - network.latency(from, to), 1e-300);
      for (int link : route) load[static_cast<std::size_t>(link)] += rate;
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].shared && load[i] > links[i].bytes_per_s * (1 + kLoadSlack)) return false;
  }
  return true;
}

}  // namespace

bool messages_meet(const Playing& playing, const Schedule& schedule) {
  const Network& network = playing.network;
  if (network.one_node()) return false;
  if (network.waits_for_wires()) return true;
  if (!any_link_is_shared(network)) return false;
  if (!schedule.shift) return network.shared() || !one_each_way(playing);
  if (!network.shared()) return false;
  const auto distances = few_distances(schedule, playing.shape.ranks);
  const double bytes = static_cast<double>(schedule.parts.size(0) * playing.element);
  return distances.empty() || !links_carry(playing, distances, bytes);
}

}  // namespace trireme::cluster
