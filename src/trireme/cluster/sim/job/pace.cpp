#include "trireme/cluster/sim/job/pace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trireme/base/mix.h"

namespace trireme::cluster {
namespace {

// In (0, 1].
double uniform(std::uint64_t key) { return (static_cast<double>(mixed(key) >> 11) + 1) * 0x1p-53; }

// How much longer each of so many workers takes when they have more threads than the node has cores.
double crowding(int workers, int threads, int cores) {
  return std::max(1.0, static_cast<double>(workers) * threads / std::max(cores, 1));
}

}  // namespace

Pace::Pace(const Network& network, const Profile& profile, int learners, std::uint64_t seed, bool noise)
    : seed_(mixed(seed + mixed(network.cluster().seed))) {
  const int ranks = network.ranks();
  const int each = std::max(profile.threads, 1);
  for (int r = 0; r < ranks; ++r) {
    const auto& node = network.node(r);
    const int here = std::min(node.workers, ranks);
    const int there = profile.cores > 0 ? profile.cores : node.cores;
    base_.push_back(crowding(here * learners, each, node.cores) / crowding(profile.beside, each, there) / node.compute);
  }
  if (noise) residuals_ = profile.residuals;
  for (const auto& straggler : network.cluster().stragglers) {
    using Kind = Straggler::Kind;
    if (straggler.kind == Kind::persistent) {
      for (int r = 0; r < ranks; ++r) {
        if (std::ranges::find(straggler.workers, network.worker(r)) != straggler.workers.end()) {
          base_[static_cast<std::size_t>(r)] *= straggler.factor;
        }
      }
    } else if (noise && straggler.kind == Kind::residuals) {
      residuals_ = straggler.ratios;
    } else if (noise) {
      turns_.resize(base_.size());
      for (std::size_t r = 0; r < base_.size(); ++r) {
        if (uniform(mixed(seed_ + 1) + r) > straggler.share) continue;
        turns_[r] = {straggler.factor, straggler.on_s, straggler.off_s};
      }
    }
  }
  std::ranges::sort(residuals_);
  steady_ =
      residuals_.empty() && turns_.empty() && std::ranges::all_of(base_, [&](double one) { return one == base_[0]; });
}

// A worker meets every residual once before it meets one again, from a place and in strides of its own.
double Pace::residual(int worker, std::int64_t step) const {
  const auto count = static_cast<std::uint64_t>(residuals_.size());
  if (count == 0) return 1;
  const auto random = mixed(seed_ + mixed(static_cast<std::uint64_t>(worker)));
  std::uint64_t stride = 1 + random / count % count;
  while (std::gcd(stride, count) != 1) ++stride;
  return residuals_[(random % count + static_cast<std::uint64_t>(step) % count * (stride % count)) % count];
}

double Pace::turned(std::size_t worker, double at_s) {
  auto& turns = turns_[worker];
  if (turns.slow == 1 || turns.on_s <= 0 || turns.off_s <= 0) return turns.slow;
  if (turns.drawn == 0) turns.on = uniform(seed_ ^ mixed(worker)) <= turns.on_s / (turns.on_s + turns.off_s);
  for (; turns.until_s <= at_s || turns.drawn == 0; ++turns.drawn) {
    if (turns.drawn > 0) turns.on = !turns.on;
    const double mean = turns.on ? turns.on_s : turns.off_s;
    turns.until_s -= mean * std::log(uniform(mixed(seed_ + worker) + turns.drawn));
  }
  return turns.on ? turns.slow : 1;
}

double Pace::factor(int worker, std::int64_t step, double at_s) {
  const auto place = static_cast<std::size_t>(worker);
  return base_[place] * residual(worker, step) * (turns_.empty() ? 1 : turned(place, at_s));
}

}  // namespace trireme::cluster
