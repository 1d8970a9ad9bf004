// Collectives of many ranks, coarsely: rounds in step. A round lasts as long as its slowest message alone, or as the
// link with most to carry needs for it, whichever is longer; all ranks begin the next one together. What a round moves
// grows with the call, so that rounds are read once for an algorithm, whatever the size.
#include <algorithm>
#include <cmath>

#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/round_work.h"

namespace trireme::cluster {
namespace {

constexpr int kFollowedRanks = 256;
constexpr int kMostRounds = 256;

// The bytes that messages and links are counted for.
Call unit_of(const Call& shape) {
  Call unit = shape;
  unit.count = unit.stride = has_blocks(shape.what) ? 1 : 64 * static_cast<std::size_t>(shape.ranks);
  return unit;
}

std::shared_ptr<const RoundLoads> read_rounds(const Network& network, const Algorithm& algorithm, const Call& unit) {
  auto loads = std::make_shared<RoundLoads>();
  RoundReader reader(algorithm, unit, 1);
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < unit.ranks; ++rank) schedules.push_back(reader.schedule(rank));
  loads->rounds.resize(static_cast<std::size_t>(schedules[0].rounds));
  const auto links = network.topology().links();
  std::vector<double> carried(links.size());
  std::vector<int> route;
  for (std::size_t k = 0; k < loads->rounds.size(); ++k) {
    auto& round = loads->rounds[k];
    std::ranges::fill(carried, 0.0);
    for (int rank = 0; rank < unit.ranks; ++rank) {
      const RoundWork& work = reader.read(schedules[static_cast<std::size_t>(rank)], rank, static_cast<int>(k));
      const LinkModel& own = network.node(rank).inside;
      const double reduced = static_cast<double>(work.folded + work.reduced) * own.gamma;
      round.compute_s = std::max(round.compute_s, reduced + static_cast<double>(work.copied) * own.copy);
      for (int peer : work.sent.peers()) {
        const auto bytes = static_cast<double>(work.sent[peer]);
        network.topology().route(network.worker(rank), network.worker(peer), route);
        for (int link : route) carried[static_cast<std::size_t>(link)] += bytes;
        const double latency = network.latency(rank, peer);
        if (latency > round.latency_s || bytes > round.bytes) {
          round.from = rank;
          round.to = peer;
        }
        round.latency_s = std::max(round.latency_s, latency);
        round.bytes = std::max(round.bytes, bytes);
      }
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links[i].shared) round.shared_s = std::max(round.shared_s, carried[i] / links[i].bytes_per_s);
    }
  }
  return loads;
}

bool reads_once(const Network& network, const Algorithm& algorithm, const Call& shape) {
  if (shape.ranks <= kFollowedRanks || shape.ranks != network.ranks() || shape.count == 0 || algorithm.shared ||
      algorithm.pipelined || network.one_node() || network.waits_for_wires()) {
    return false;
  }
  Call call = shape;
  call.rank = 0;
  const Schedule schedule = algorithm.plan(call);
  return !schedule.shift && schedule.rounds > 1 && schedule.rounds <= kMostRounds;
}

}  // namespace

double play_rounds(const Network& network, const Algorithm& algorithm, const Call& shape, std::size_t element_bytes) {
  if (!reads_once(network, algorithm, shape)) return play(network, algorithm, shape, element_bytes);
  const Call unit = unit_of(shape);
  std::shared_ptr<const RoundLoads> loads;
  {
    MutexLock lock(network.memory().guard);
    loads = network.memory().rounds[&algorithm];
  }
  if (!loads) {
    loads = read_rounds(network, algorithm, unit);
    MutexLock lock(network.memory().guard);
    network.memory().rounds[&algorithm] = loads;
  }
  const double scale =
      static_cast<double>(shape.count) * static_cast<double>(element_bytes) / static_cast<double>(unit.count);
  double seconds = 0;
  for (const auto& round : loads->rounds) {
    double sent = 0;
    if (round.bytes > 0) {
      const double alone =
          network.message(round.from, round.to, round.bytes * scale) - network.latency(round.from, round.to);
      sent = round.latency_s + std::max(alone, round.shared_s * scale);
    }
    seconds += sent + round.compute_s * scale;
  }
  return seconds;
}

}  // namespace trireme::cluster
