#include "trireme/cluster/planner/bounds.h"

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/cluster/network.h"
#include "trireme/cluster/sim/collective_time.h"
#include "trireme/collective/schedule.h"
#include "trireme/compress/codecs.h"
#include "trireme/mesh/schedule.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::cluster {
namespace {

// Jitter can make a short simulation a little faster than the medians it is drawn around.
constexpr double kJitter = 1.05;
// A variant further behind the best closed form than this is not simulated; and no more than so many are.
constexpr double kNear = 1.02;
constexpr std::size_t kMostVariants = 4;

double total_speed(const Cluster& cluster, int workers) {
  double sum = 0;
  for (int worker = 0; worker < workers; ++worker) sum += cluster.class_of(worker).compute;
  return sum;
}

// Of a step of all replicas.
double samples_of(const Candidate& candidate, const Profile& profile) {
  const double replicas = candidate.on_mesh ? candidate.mesh.data : candidate.workers;
  return replicas * profile.batch * candidate.strategy.learners();
}

}  // namespace

double Bounds::compute_s() const {
  const auto& profile = question_.profile;
  return profile.forward_s.p50 + profile.backward_s.p50 + profile.optimizer_s.p50;
}

Bounds::Costs& Bounds::costs_of(const std::string& algorithm, int workers) {
  auto [found, fresh] = costs_.try_emplace({algorithm, workers});
  if (fresh) {
    found->second.workers = workers;
    if (algorithm != "auto") found->second.algorithm = &find_algorithm(Collective::all_reduce, algorithm);
  }
  return found->second;
}

double Bounds::at_octave(Costs& costs, std::size_t octave) {
  if (costs.seconds.size() <= octave) costs.seconds.resize(octave + 1, -1);
  double& seconds = costs.seconds[octave];
  if (seconds >= 0) return seconds;
  const Network network = network_.first(costs.workers);
  const std::size_t count = std::size_t{1} << octave;
  const Algorithm& chosen = costs.algorithm
                                ? *costs.algorithm
                                : pick_algorithm(network, Collective::all_reduce, count, sizeof(float), costs.workers);
  const Call call{Collective::all_reduce, 0, costs.workers, 0, count, count};
  return seconds = play(network, chosen, call, sizeof(float));
}

double Bounds::all_reduce_s(Costs& costs, double bytes) {
  const double elements = std::max(1.0, bytes / sizeof(float));
  const auto octave = static_cast<std::size_t>(std::ilogb(elements));
  const double below = at_octave(costs, octave), size = std::ldexp(1.0, static_cast<int>(octave));
  if (elements <= size) return below;
  return below + (at_octave(costs, octave + 1) - below) * (elements - size) / size;
}

double Bounds::most_samples_per_s(const Candidate& candidate) {
  // Learners of a worker share its cores at best without loss.
  auto [speed, fresh] = speeds_.try_emplace(candidate.workers, 0.0);
  if (fresh) speed->second = total_speed(question_.cluster, candidate.workers);
  double rate = speed->second * question_.profile.batch * candidate.strategy.learners() / compute_s();
  const double samples = samples_of(candidate, question_.profile);
  if (candidate.on_mesh)
    rate = samples / std::max(exchange_.stages_s(candidate, speed->second / candidate.workers), 1e-12);
  if (const double sending = exchange_.bytes_s(candidate); sending > 0) rate = std::min(rate, samples / sending);
  return rate * kJitter;
}

double Bounds::most_at_closer_look(const Candidate& candidate) {
  const double seconds = candidate.on_mesh ? replica_s(candidate) : exchange_.exchange_s(candidate);
  return seconds > 0 ? kJitter * samples_of(candidate, question_.profile) / seconds : HUGE_VAL;
}

// One replica exchanges nothing with others; what it computes is the same for any number of them.
double Bounds::replica_s(const Candidate& candidate) {
  const auto [data, pipe, tensor] = candidate.mesh;
  if (pipe == 1 && tensor == 1) return 0;
  auto [known, fresh] = stages_.try_emplace(
      {candidate.schedule, pipe, tensor, candidate.micro_batches, candidate.saving.recompute_every}, 0.0);
  if (!fresh) return known->second;
  Candidate one = candidate;
  one.workers = pipe * tensor;
  one.mesh.data = 1;
  one.saving.shard = mesh::Saving::Shard::none;
  auto job = job_of(question_, one, {});
  job.splits = splits_;
  try {
    known->second = simulate(network_, job).step_s;
  } catch (const ConfigError&) {
    // The simulation of the way itself says why.
  }
  return known->second;
}

// On many workers each play takes its time, and what is picked there is the fastest at every size already.
std::vector<Variant> Bounds::feasible(const Candidate& candidate, std::vector<Variant> variants) const {
  constexpr int kMany = 256;
  if (candidate.workers <= kMany || !question_.space.algorithms.empty()) return variants;
  std::erase_if(variants, [](const Variant& one) { return one.algorithm != "auto"; });
  return variants;
}

std::vector<sync::Gradient> Bounds::gradients() const {
  std::vector<sync::Gradient> all;
  double ready = 0;
  for (const auto& gradient : question_.profile.gradients) {
    ready = std::max(ready, gradient.ready_s.p50);
    all.push_back({ready, sizeof(float) * gradient.elements, true});
  }
  return all;
}

// When the last bucket has arrived, since backward began. Lanes hide the latency of one exchange behind another's.
double Bounds::exchange_s(const Candidate& candidate, const Variant& variant) {
  const auto codec = compress::Choice::parse(candidate.compress);
  const double ratio = codec.none() ? 1 : question_.profile.codec(codec.kind->name).ratio;
  auto& known = costs_of(variant.algorithm, candidate.workers);
  const double latency = at_octave(known, 0) * (1 - 1.0 / variant.lanes);
  auto cost = [&](std::size_t bytes) {
    return std::max(0.0, all_reduce_s(known, static_cast<double>(bytes) * ratio) - latency);
  };
  if (!candidate.traits.buckets) return cost(question_.profile.gradient_bytes());
  const sync::BucketCosts costs{cost, question_.profile.slowdown, question_.profile.pack_s_per_byte};
  const auto all = gradients();
  return sync::finish_time(all, sync::plan_buckets(sync::parse_bucket_plan(variant.bucket_plan), all, costs), costs);
}

std::vector<Variant> Bounds::promising(const Candidate& candidate, std::vector<Variant> variants) {
  variants = feasible(candidate, std::move(variants));
  if (variants.size() == 1) return variants;
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < variants.size(); ++i) ranked.emplace_back(exchange_s(candidate, variants[i]), i);
  const double compute = question_.profile.forward_s.p50 + question_.profile.optimizer_s.p50;
  const double backward = question_.profile.backward_s.p50;
  auto step = [&](double exchange) { return compute + std::max(backward, exchange); };
  const double best = step(std::ranges::min_element(ranked)->first);
  std::vector<Variant> kept{variants.front()};
  std::ranges::stable_sort(ranked, {}, &std::pair<double, std::size_t>::first);
  for (const auto& [seconds, index] : ranked) {
    if (kept.size() == kMostVariants || step(seconds) > kNear * best) break;
    if (index != 0) kept.push_back(variants[index]);
  }
  return kept;
}

}  // namespace trireme::cluster
