// Many ranks of which each sends as much to every other, all at once: no need to follow their messages one by one.
//
// Equal flows begin together. The link with most to carry gives the smallest share there is, so that its flows are held
// back nowhere else, go at that share from beginning to end, and end last: after what it carries over what it can, or
// after what a message takes alone. Begun at different times, all are taken to begin with the last.
#include <algorithm>

#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/round_work.h"

namespace trireme::cluster {
namespace {

constexpr int kFollowed = 256;  // ranks whose messages are followed one by one

// The bytes of each message; 0 where they differ.
std::uint64_t bytes_of_pairs(const Playing& playing) {
  const int ranks = playing.shape.ranks;
  RoundReader reader(playing.algorithm, playing.shape, playing.element);
  std::uint64_t bytes = 0;
  for (int rank : {0, ranks / 2, ranks - 1}) {
    const RoundWork& work = reader.read(reader.schedule(rank), rank, 0);
    for (const PerPeer* way : {&work.sent, &work.received}) {
      if (way->peers().size() != static_cast<std::size_t>(ranks) - 1) return 0;
      for (int peer : way->peers()) {
        if (bytes == 0) bytes = (*way)[peer];
        if ((*way)[peer] != bytes) return 0;
      }
    }
  }
  return bytes;
}

std::shared_ptr<const PairLoads> loads_of(const Network& network) {
  auto loads = std::make_shared<PairLoads>();
  const auto links = network.topology().links();
  loads->messages.resize(links.size());
  std::vector<int> route;
  for (int from = 0; from < network.ranks(); ++from) {
    for (int to = 0; to < network.ranks(); ++to) {
      if (to == from) continue;
      network.topology().route(network.worker(from), network.worker(to), route);
      if (route.empty()) ++loads->inside;
      for (int link : route) ++loads->messages[static_cast<std::size_t>(link)];
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!links[i].shared) continue;
    loads->shared_s = std::max(loads->shared_s, static_cast<double>(loads->messages[i]) / links[i].bytes_per_s);
  }
  return loads;
}

}  // namespace

const PairLoads& Network::pair_loads() const {
  MutexLock lock(memory_->guard);
  if (!memory_->pairs) memory_->pairs = loads_of(*this);
  return *memory_->pairs;
}

std::optional<Played> play_all_pairs(const Playing& playing, const Schedule& schedule) {
  const Network& network = playing.network;
  const int ranks = playing.shape.ranks;
  if (ranks <= kFollowed || ranks != network.ranks() || schedule.rounds != 1 || schedule.shift || playing.observe ||
      network.one_node() || network.waits_for_wires()) {
    return std::nullopt;
  }
  const std::uint64_t bytes = bytes_of_pairs(playing);
  if (bytes == 0) return std::nullopt;
  const PairLoads& loads = network.pair_loads();
  const auto size = static_cast<double>(bytes);
  double latency = 0, alone = 0;
  for (int rank = 1; rank < ranks; ++rank) {
    for (const auto& [from, to] : {std::pair(0, rank), std::pair(rank, rank - 1)}) {
      latency = std::max(latency, network.latency(from, to));
      alone = std::max(alone, network.message(from, to, size) - network.latency(from, to));
    }
  }
  const double begin = *std::max_element(playing.begins.begin(), playing.begins.end());
  const double there = begin + latency + std::max(alone, size * loads.shared_s);
  RoundReader reader(playing.algorithm, playing.shape, playing.element);
  const RoundWork& work = reader.read(schedule, 0, 0);
  double end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const LinkModel& own = network.node(rank).inside;
    playing.ends[static_cast<std::size_t>(rank)] = there + static_cast<double>(work.copied) * own.copy +
                                                   static_cast<double>(work.folded + work.reduced) * own.gamma;
    end = std::max(end, playing.ends[static_cast<std::size_t>(rank)]);
  }
  const auto messages = static_cast<std::uint64_t>(ranks) * static_cast<std::uint64_t>(ranks - 1);
  if (playing.traffic != nullptr) {
    Traffic all;
    for (std::uint64_t count : loads.messages) all.bytes.push_back(count * bytes);
    all.inside = loads.inside * bytes;
    all.messages = messages;
    playing.traffic->add(all);
  }
  return Played{Tier::flows, end, messages};
}

}  // namespace trireme::cluster
