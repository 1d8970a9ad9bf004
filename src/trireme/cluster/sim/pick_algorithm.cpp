// `auto` on a network.
#include <algorithm>
#include <limits>

#include "trireme/cluster/sim/collective_time.h"
#include "trireme/collective/cost/formulas.h"
#include "trireme/collective/cost/select.h"

namespace trireme::cluster {
namespace {

constexpr int kFewRanks = 64;  // up to here everything is played; above, what the closed forms like best
constexpr std::size_t kPlayed = 4;
constexpr double kAlike = 1e-9;  // relative

double textbook_seconds(const Network& network, const Algorithm& algorithm, const Call& shape, double bytes) {
  const double alpha = network.latency(0, shape.ranks - 1);
  const double all = bytes * (has_blocks(shape.what) ? shape.ranks : 1);
  const double beta = all > 0 ? (network.message(0, shape.ranks - 1, all) - alpha) / all : 0;
  auto form = closed_form(shape.what, algorithm.name, {shape.ranks, all, alpha, beta, network.node(0).inside.gamma});
  return form ? form->time_one.value : std::numeric_limits<double>::infinity();
}

const Algorithm* fastest(const Network& network, const Call& shape, std::size_t element_bytes, bool coarse) {
  std::vector<std::pair<double, const Algorithm*>> candidates;
  const double bytes = static_cast<double>(shape.count * element_bytes);
  for (const Algorithm* algorithm : algorithms_for(shape.what)) {
    if (!algorithm->shared) candidates.emplace_back(textbook_seconds(network, *algorithm, shape, bytes), algorithm);
  }
  if (shape.ranks > kFewRanks && candidates.size() > kPlayed) {
    std::stable_sort(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return a.first < b.first; });
    // Of those with as many rounds and bytes the first: what differs is who talks to whom, and a ring's are neighbours.
    const auto alike = [](auto& a, auto& b) { return b.first - a.first <= kAlike * b.first; };
    candidates.erase(std::unique(candidates.begin(), candidates.end(), alike), candidates.end());
    candidates.resize(std::min(candidates.size(), kPlayed));
  }
  for (auto& [seconds, algorithm] : candidates) {
    seconds = coarse ? play_rounds(network, *algorithm, shape, element_bytes)
                     : play(network, *algorithm, shape, element_bytes);
  }
  return std::min_element(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return a.first < b.first; })
      ->second;
}

}  // namespace

const Algorithm& pick_algorithm(const Network& network, Collective what, std::size_t count, std::size_t element_bytes,
                                int ranks, bool coarse) {
  const std::uint64_t bytes = count * element_bytes;
  if (network.shares_memory()) {
    return find_algorithm(what, shared_pattern(what, bytes, ranks, network.node(0).inline_limit));
  }
  if (ranks == 1) return *algorithms_for(what).back();
  const std::uint64_t size = representative(bytes);
  const std::array<std::uint64_t, 4> key{static_cast<std::uint64_t>(what), size << 4 | element_bytes,
                                         static_cast<std::uint64_t>(ranks), coarse ? 1u : 0u};
  Memory& choices = network.memory();
  {
    MutexLock lock(choices.guard);
    if (auto found = choices.picked.find(key); found != choices.picked.end()) return *found->second;
  }
  const std::size_t elements = std::max<std::size_t>(size / element_bytes, bytes > 0 ? 1 : 0);
  const Algorithm* best = fastest(network, {what, 0, ranks, 0, elements, elements}, element_bytes, coarse);
  MutexLock lock(choices.guard);
  return *choices.picked.emplace(key, best).first->second;
}

}  // namespace trireme::cluster
