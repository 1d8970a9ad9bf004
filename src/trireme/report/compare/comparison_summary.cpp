#include "trireme/report/compare/comparison_summary.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::train {
namespace {

using M = Measure;
using S = VariantSummary;
using Run = ComparedRun;

// Of accuracy; measures() has them for other metrics.
const std::array kMeasures{
    M{"test_accuracy", "test acc", M::kShare, M::kHigher, &S::test_metric,
      [](const Run& run, double) { return run.test_metric; }, M::kAlways},
    M{"target_seconds", "time to target", M::kSeconds, M::kLower, &S::to_target, seconds_to, M::kAlways},
    M{"samples_per_s", "samples/s", M::kCount, M::kHigher, &S::samples_per_second,
      [](const Run& run, double) { return run.samples_per_second; }, M::kAlways},
    M{"steps", "steps", M::kCount, M::kNeither, &S::steps, [](const Run& run, double) { return run.steps; },
      M::kAlways},
    M{"train_seconds", "train time", M::kSeconds, M::kLower, &S::train_seconds,
      [](const Run& run, double) { return run.train_seconds; }, M::kAlways},
    M{"best_accuracy", "best acc", M::kShare, M::kHigher, &S::best_metric,
      [](const Run& run, double) { return run.best_metric; }, M::kAlways},
    M{"train_accuracy", "train acc", M::kShare, M::kNeither, &S::train_metric,
      [](const Run& run, double) { return run.train_metric(); }, M::kAlways},
    M{"target_bytes", "sent to target", M::kBytes, M::kLower, &S::bytes_to_target, bytes_to, M::kWhereKnown},
    M{"bytes_sent", "sent", M::kBytes, M::kLower, &S::bytes_sent, [](const Run& run, double) { return run.bytes_sent; },
      M::kWhereKnown},
    M{"wait_share", "wait", M::kShare, M::kLower, &S::wait_share,
      [](const Run& run, double) { return wait_share(run); }, M::kWhereKnown},
    M{"staleness_mean", "stale", M::kNumber, M::kNeither, &S::staleness_mean,
      [](const Run& run, double) { return run.staleness_mean; }, M::kWhereKnown},
    M{"staleness_max", "most stale", M::kNumber, M::kNeither, &S::staleness_max,
      [](const Run& run, double) { return run.staleness_max; }, M::kWhereKnown},
    M{"consensus", "consensus", M::kNumber, M::kNeither, &S::consensus,
      [](const Run& run, double) { return run.consensus; }, M::kWhereKnown},
    M{"wait_s", "wait", M::kSeconds, M::kLower, &S::wait_s, [](const Run& run, double) { return run.wait_s; },
      M::kInFiles},
    M{"compute_s", "compute", M::kSeconds, M::kNeither, &S::compute_s,
      [](const Run& run, double) { return run.compute_s; }, M::kInFiles},
    M{"target_steps", "steps to target", M::kCount, M::kNeither, &S::steps_to_target, steps_to, M::kInFiles},
};

}  // namespace

std::vector<Measure> measures(const ComparedBy& by) {
  std::vector<Measure> all(kMeasures.begin(), kMeasures.end());
  const auto title = by.key == "accuracy" ? std::string("acc") : by.title;
  for (auto& measure : all) {
    if (measure.key.find("accuracy") == std::string::npos) continue;
    measure.key = by.named(measure.key);
    measure.title.replace(measure.title.find("acc"), 3, title);
    measure.kind = by.share ? M::kShare : M::kNumber;
    if (measure.better == M::kHigher && !by.higher_is_better) measure.better = M::kLower;
  }
  return all;
}

std::vector<Measure> shown_measures(const Comparison& comparison, const std::vector<VariantSummary>& summaries) {
  std::vector<Measure> first, costs;
  for (const auto& measure : measures(comparison.by)) {
    bool known = std::ranges::any_of(summaries, [&](const auto& summary) {
      const auto& spread = summary.*(measure.member);
      return spread.count > 0 && spread.high > 0;
    });
    if (measure.shown == M::kAlways) first.push_back(measure);
    if (measure.shown == M::kWhereKnown && known) costs.push_back(measure);
  }
  auto place = comparison.varies("sync.") ? first.begin() + 2 : first.end();  // after accuracy, and the time to it
  first.insert(place, costs.begin(), costs.end());
  return first;
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  double sum = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    spread.low = spread.count ? std::min(spread.low, value) : value;
    spread.high = spread.count ? std::max(spread.high, value) : value;
    ++spread.count;
  }
  if (spread.count == 0) return spread;
  spread.mean = sum / spread.count;
  double squares = 0;
  for (double value : values) {
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  if (spread.count > 1) spread.deviation = std::sqrt(squares / (spread.count - 1));
  return spread;
}

const CurvePoint* point_at(const ComparedRun& run, double target) {
  constexpr double kRounding = 1e-9;
  for (const auto& point : run.curve) {
    const double over = run.higher_is_better ? point.test_metric - target : target - point.test_metric;
    if (over >= -kRounding) return &point;
  }
  return nullptr;
}

double seconds_to(const ComparedRun& run, double target) {
  const auto* point = point_at(run, target);
  return point ? point->train_seconds : kUnknown;
}

double bytes_to(const ComparedRun& run, double target) {
  const auto* point = point_at(run, target);
  return point ? point->bytes_sent : kUnknown;
}

double steps_to(const ComparedRun& run, double target) {
  const auto* point = point_at(run, target);
  if (!point) return kUnknown;
  return run.worker_steps > 0 && run.steps > 0 ? point->step * run.worker_steps / run.steps : point->step;
}

double wait_share(const ComparedRun& run) {
  double whole = run.wait_s + run.compute_s;
  return whole > 0 ? run.wait_s / whole : kUnknown;
}

VariantSummary summarize(const Comparison& comparison, std::size_t variant, double target) {
  VariantSummary summary;
  std::vector<const ComparedRun*> finished;
  for (const auto& run : comparison.runs) {
    if (run.variant != variant) continue;
    if (run.finished()) {
      finished.push_back(&run);
    } else {
      ++summary.unfinished;
    }
  }
  summary.finished = static_cast<int>(finished.size());
  for (const auto& measure : kMeasures) {
    std::vector<double> values;
    for (const auto* run : finished) values.push_back(measure.of(*run, target));
    summary.*(measure.member) = spread_of(values);
  }
  for (auto part : {&StepBreakdown::forward, &StepBreakdown::backward, &StepBreakdown::exposed,
                    &StepBreakdown::communication, &StepBreakdown::optimizer, &StepBreakdown::other}) {
    for (const auto* run : finished) summary.step.*part += run->step.*part / summary.finished;
  }
  return summary;
}

double target_of(const Comparison& comparison) {
  if (comparison.target > 0) return comparison.target;
  const bool higher = comparison.by.higher_is_better;
  double worst = kUnknown;
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) {
    double mean = summarize(comparison, v, 0).test_metric.mean;
    if (std::isfinite(mean) && !(higher ? worst <= mean : worst >= mean)) worst = mean;
  }
  if (!std::isfinite(worst) || worst == 0) return worst;
  const double digits = comparison.by.share ? 4 : 3 - std::floor(std::log10(std::abs(worst)));
  const double scale = std::pow(10, digits);
  return (higher ? std::floor(worst * scale + 1e-6) : std::ceil(worst * scale - 1e-6)) / scale;
}

bool told_apart(const Spread& a, const Spread& b) {
  int count = std::min(a.count, b.count);
  if (count < 2) return false;
  if (count == 2) return a.low > b.high || b.low > a.high;
  return std::abs(a.mean - b.mean) > std::hypot(a.deviation, b.deviation);
}

std::vector<Standing> standings(const std::vector<VariantSummary>& summaries, const Measure& measure) {
  std::vector<Standing> all(summaries.size(), Standing::kOpen);
  if (measure.better == Measure::kNeither) return all;
  const Spread* best = nullptr;
  int known = 0;
  for (const auto& summary : summaries) {
    const auto& spread = summary.*(measure.member);
    if (spread.count == 0) continue;
    ++known;
    if (spread.count < summary.finished) continue;  // a mean of the lucky ones
    if (!best || (measure.better == Measure::kHigher ? spread.mean > best->mean : spread.mean < best->mean)) {
      best = &spread;
    }
  }
  if (known < 2 || !best || best->count < 2) return all;
  for (std::size_t v = 0; v < all.size(); ++v) {
    const auto& spread = summaries[v].*(measure.member);
    if (spread.count == 0) continue;
    if (&spread == best) {
      all[v] = Standing::kBest;
    } else if (spread.count >= 2 && spread.count == summaries[v].finished) {
      all[v] = told_apart(spread, *best) ? Standing::kWorse : Standing::kWithinSpread;
    }
  }
  return all;
}

}  // namespace trireme::train
