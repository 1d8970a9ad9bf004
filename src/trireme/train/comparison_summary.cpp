#include "trireme/train/comparison_summary.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::train {
namespace {

constexpr std::array kMeasures{
    Measure{"test_accuracy", "test acc", Measure::kShare, Measure::kHigher, &VariantSummary::test_accuracy},
    Measure{"target_seconds", "time to target", Measure::kSeconds, Measure::kLower, &VariantSummary::to_target},
    Measure{"samples_per_s", "samples/s", Measure::kCount, Measure::kHigher, &VariantSummary::samples_per_second},
    Measure{"steps", "steps", Measure::kCount, Measure::kNeither, &VariantSummary::steps},
    Measure{"train_seconds", "train time", Measure::kSeconds, Measure::kLower, &VariantSummary::train_seconds},
    Measure{"best_accuracy", "best acc", Measure::kShare, Measure::kHigher, &VariantSummary::best_accuracy},
    Measure{"train_accuracy", "train acc", Measure::kShare, Measure::kNeither, &VariantSummary::train_accuracy},
};

}  // namespace

std::span<const Measure> measures() { return kMeasures; }

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

double seconds_to(const ComparedRun& run, double target) {
  constexpr double kRounding = 1e-9;
  for (const auto& point : run.curve) {
    if (point.test_accuracy >= target - kRounding) return point.train_seconds;
  }
  return kUnknown;
}

VariantSummary summarize(const Comparison& comparison, std::size_t variant, double target) {
  VariantSummary summary;
  std::vector<double> test, best, train, seconds, steps, rate, to_target;
  StepBreakdown sums;
  constexpr double StepBreakdown::*kParts[] = {&StepBreakdown::forward,   &StepBreakdown::backward,
                                               &StepBreakdown::exposed,   &StepBreakdown::communication,
                                               &StepBreakdown::optimizer, &StepBreakdown::other};
  for (const auto& run : comparison.runs) {
    if (run.variant != variant) continue;
    if (!run.finished()) {
      ++summary.unfinished;
      continue;
    }
    ++summary.finished;
    test.push_back(run.test_accuracy);
    best.push_back(run.best_accuracy);
    train.push_back(run.train_accuracy());
    seconds.push_back(run.train_seconds);
    steps.push_back(run.steps);
    rate.push_back(run.samples_per_second);
    to_target.push_back(seconds_to(run, target));
    for (auto part : kParts) sums.*part += run.step.*part;
  }
  for (auto part : kParts) summary.step.*part = sums.*part / std::max(summary.finished, 1);
  summary.test_accuracy = spread_of(test);
  summary.best_accuracy = spread_of(best);
  summary.train_accuracy = spread_of(train);
  summary.to_target = spread_of(to_target);
  summary.train_seconds = spread_of(seconds);
  summary.steps = spread_of(steps);
  summary.samples_per_second = spread_of(rate);
  return summary;
}

double target_of(const Comparison& comparison) {
  if (comparison.target > 0) return comparison.target;
  double lowest = kUnknown;
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) {
    double mean = summarize(comparison, v, 0).test_accuracy.mean;
    if (std::isfinite(mean) && !(lowest <= mean)) lowest = mean;
  }
  return std::floor(lowest * 1e4 + 1e-6) / 1e4;
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
