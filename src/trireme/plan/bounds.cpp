#include "trireme/plan/bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trireme/compress/codecs.h"
#include "trireme/pipeline/schedule.h"
#include "trireme/plan/bucket_plan.h"

namespace trireme::plan {
namespace {

// Jitter can make a short simulation a little faster than the medians it is drawn around.
constexpr double kJitter = 1.05;
// A variant further behind the best closed form than this is not simulated; and no more than so many are.
constexpr double kNear = 1.02;
constexpr std::size_t kMostVariants = 4;

double speed_of(const Cluster& cluster, int workers) {
  double sum = 0;
  for (int worker = 0; worker < workers; ++worker) sum += cluster.class_of(worker).compute;
  return sum;
}

// The share of a pipeline's time in which stages idle, where a formula knows it.
double bubble_of(const Way& way) {
  if (!way.on_mesh || way.mesh.pipe == 1) return 0;
  const auto& kind = pipelines::find_kind(way.schedule);
  return kind.bubble(way.mesh.pipe, way.micro_batches, 2).value_or(0);
}

}  // namespace

double Bounds::compute_s() const {
  const auto& profile = question_.profile;
  return profile.forward_s.p50 + profile.backward_s.p50 + profile.optimizer_s.p50;
}

const Network& Bounds::network_of(int workers) {
  if (workers == network_.ranks()) return network_;
  auto found = networks_.find(workers);
  if (found == networks_.end()) {
    std::vector<int> first(static_cast<std::size_t>(workers));
    std::iota(first.begin(), first.end(), 0);
    found = networks_.emplace(workers, network_.on(std::move(first))).first;
  }
  return found->second;
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
  const Network& network = network_of(costs.workers);
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

double Bounds::most_samples_per_s(const Way& way) {
  const double learners =
      way.strategy.kind->learners ? std::max(1, way.strategy.kind->learners(way.strategy.values)) : 1;
  // Learners of a worker share its cores at best without loss.
  double seconds = compute_s() * (way.on_mesh ? 1 / (1 - bubble_of(way)) : 1);
  const double workers = speed_of(question_.cluster, way.workers);
  double rate = workers * question_.profile.batch * learners / seconds;
  if (way.on_mesh || way.workers == 1 || !way.traits.buckets || !compress::Choice::parse(way.compress).none()) {
    return rate * kJitter;
  }
  double exchange = HUGE_VAL;  // of all gradients at once, by whatever is fastest
  for (const auto& variant : feasible(way, list_variants(question_, way))) {
    exchange = std::min(exchange, all_reduce_s(costs_of(variant.algorithm, way.workers),
                                               static_cast<double>(question_.profile.gradient_bytes())));
  }
  const double all = static_cast<double>(way.workers) * question_.profile.batch;
  return std::min(rate, all / std::max(exchange, 1e-12)) * kJitter;
}

// On many workers each play takes its time, and what is picked there is the fastest at every size already.
std::vector<Variant> Bounds::feasible(const Way& way, std::vector<Variant> variants) const {
  constexpr int kMany = 256;
  if (way.workers <= kMany || !question_.space.algorithms.empty()) return variants;
  std::erase_if(variants, [](const Variant& one) { return one.algorithm != "auto"; });
  return variants;
}

std::vector<Gradient> Bounds::gradients() const {
  std::vector<Gradient> all;
  double ready = 0;
  for (const auto& gradient : question_.profile.gradients) {
    ready = std::max(ready, gradient.ready_s.p50);
    all.push_back({ready, sizeof(float) * gradient.elements, true});
  }
  return all;
}

// When the last bucket has arrived, since backward began. Lanes hide the latency of one exchange behind another's.
double Bounds::exchange_s(const Way& way, const Variant& variant) {
  const auto codec = compress::Choice::parse(way.compress);
  const double ratio = codec.none() ? 1 : question_.profile.codec(codec.kind->name).ratio;
  auto& known = costs_of(variant.algorithm, way.workers);
  const double latency = at_octave(known, 0) * (1 - 1.0 / variant.lanes);
  auto cost = [&](std::size_t bytes) {
    return std::max(0.0, all_reduce_s(known, static_cast<double>(bytes) * ratio) - latency);
  };
  if (!way.traits.buckets) return cost(question_.profile.gradient_bytes());
  const BucketCosts costs{cost, question_.profile.slowdown, question_.profile.pack_s_per_byte};
  const auto all = gradients();
  return finish_time(all, plan_buckets(parse_bucket_plan(variant.bucket_plan), all, costs), costs);
}

std::vector<Variant> Bounds::promising(const Way& way, std::vector<Variant> variants) {
  variants = feasible(way, std::move(variants));
  if (variants.size() == 1) return variants;
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < variants.size(); ++i) ranked.emplace_back(exchange_s(way, variants[i]), i);
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

}  // namespace trireme::plan
