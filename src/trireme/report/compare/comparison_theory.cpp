#include "trireme/report/compare/comparison_theory.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/report/compare/comparison_summary.h"
#include "trireme/sync/strategies.h"

namespace trireme::train {
namespace {

double lowest_loss(const Comparison& comparison) {
  double lowest = kUnknown;
  for (const auto& run : comparison.runs) {
    if (!run.finished()) continue;
    for (const auto& point : run.curve) {
      if (std::isfinite(point.train_loss) && !(lowest <= point.train_loss)) lowest = point.train_loss;
    }
  }
  return lowest;
}

// Means over the seeds, of as many points as every one of them has.
std::vector<GapPoint> mean_of(const std::vector<std::vector<GapPoint>>& seeds) {
  if (seeds.empty()) return {};
  std::vector<GapPoint> mean(std::ranges::min(seeds, {}, &std::vector<GapPoint>::size).size());
  for (std::size_t k = 0; k < mean.size(); ++k) {
    for (const auto& points : seeds) {
      mean[k].step += points[k].step / static_cast<double>(seeds.size());
      mean[k].gap += points[k].gap / static_cast<double>(seeds.size());
    }
  }
  return mean;
}

struct Known {
  Bound bound = Bound::kNone;
  std::optional<double> staleness;  // that SSP's bound is about
};

Known known_of(const Comparison& comparison, std::size_t variant) {
  try {
    using Proven = sync::StrategyKind::Proven;
    const auto choice = sync::Choice::parse(comparison.config_of(variant, 1).strategy);
    const auto proven = choice.kind->proven;
    if (proven == Proven::nothing) return {};
    Known known{proven == Proven::staleness ? Bound::kSsp : Bound::kSpeedup, {}};
    for (const auto& one : choice.exchange_plan({})) {
      if (one.what == sync::Exchange::What::push_pull) known.staleness = static_cast<double>(one.clock.s);
    }
    return known;
  } catch (const ConfigError&) {  // from a file, of a time when there was such a strategy
  }
  return {};
}

Rate rate_of(const Comparison& comparison, std::size_t variant, double best_loss) {
  std::vector<std::vector<GapPoint>> seeds;
  double workers = kUnknown;
  for (const auto& run : comparison.runs) {
    if (run.variant != variant || !run.finished()) continue;
    seeds.push_back(gaps_of(run, best_loss));
    workers = run.workers;
  }
  if (std::isnan(workers)) return {};  // a run of before this was noted
  auto rate = fit_rate(mean_of(seeds), workers);
  rate.bound = known_of(comparison, variant).bound;
  return rate;
}

// Whether only the strategy differs.
bool same_but_strategy(const Comparison& comparison, std::size_t a, std::size_t b) {
  for (std::size_t k = 0; k < comparison.varied.size(); ++k) {
    if (comparison.varied[k].key == "sync.strategy") continue;
    if (comparison.variants[a].values[k] != comparison.variants[b].values[k]) return false;
  }
  return true;
}

double ratio_of(const Spread& a, const Spread& b) { return b.mean > 0 ? a.mean / b.mean : kUnknown; }

// Each against the one of the least staleness.
std::vector<StalenessPair> pairs_of(const Comparison& comparison, const std::vector<Rate>& rates, double target) {
  std::vector<StalenessPair> pairs;
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) {
    auto s = known_of(comparison, v).staleness;
    if (!s) continue;
    StalenessPair pair{.variant = v, .against = v, .s = *s, .against_s = *s};
    for (std::size_t w = 0; w < comparison.variants.size(); ++w) {
      auto other = same_but_strategy(comparison, v, w) ? known_of(comparison, w).staleness : std::nullopt;
      if (!other || *other >= pair.against_s) continue;
      pair.against = w;
      pair.against_s = *other;
    }
    if (pair.against == v) continue;
    auto a = summarize(comparison, v, target), b = summarize(comparison, pair.against, target);
    pair.steps = ratio_of(a.steps_to_target, b.steps_to_target);
    pair.seconds = ratio_of(a.to_target, b.to_target);
    const auto &mine = rates[v].points, &others = rates[pair.against].points;
    if (!mine.empty() && !others.empty()) {
      double step = std::min(mine.back().step, others.back().step);
      pair.gap = gap_at(mine, step) / gap_at(others, step);
    }
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace

double StalenessPair::bound_gap() const { return std::sqrt(bound_steps()); }
double StalenessPair::bound_steps() const { return (s + 1) / (against_s + 1); }

std::vector<GapPoint> gaps_of(const ComparedRun& run, double best_loss) {
  std::vector<GapPoint> points;
  double sum = 0, last = 0;
  double to_worker = run.worker_steps > 0 && run.steps > 0 ? run.worker_steps / run.steps : 1;
  for (const auto& point : run.curve) {
    if (!std::isfinite(point.train_loss) || !(point.step > last)) return points;
    sum += point.train_loss * (point.step - last);
    last = point.step;
    points.push_back({last * to_worker, sum / last - best_loss});
  }
  return points;
}

double gap_at(const std::vector<GapPoint>& points, double step) {
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (points[k].step == step) return points[k].gap;
    if (k == 0 || points[k].step < step || points[k - 1].step > step) continue;
    const auto &a = points[k - 1], &b = points[k];
    double share = std::log(step / a.step) / std::log(b.step / a.step);
    return a.gap * std::pow(b.gap / a.gap, share);
  }
  return kUnknown;
}

Rate fit_rate(const std::vector<GapPoint>& points, double workers) {
  constexpr std::size_t kFewest = 3;
  Rate rate;
  rate.workers = workers;
  double x_sum = 0, y_sum = 0;
  for (auto point : points) {
    if (!(point.step > 0 && point.gap > 0)) continue;
    rate.points.push_back(point);
    x_sum += std::log(point.step);
    y_sum += std::log(point.gap);
  }
  if (rate.points.size() < kFewest) return rate;
  double n = static_cast<double>(rate.points.size()), x_mean = x_sum / n, y_mean = y_sum / n, xx = 0, xy = 0;
  for (auto point : rate.points) {
    double x = std::log(point.step) - x_mean;
    xx += x * x;
    xy += x * (std::log(point.gap) - y_mean);
  }
  if (xx > 0) rate.slope = xy / xx;
  rate.constant = std::exp(y_mean + (x_mean + std::log(workers)) / 2);
  return rate;
}

Theory theory_of(const Comparison& comparison, double target) {
  Theory theory;
  theory.best_loss = lowest_loss(comparison);
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) {
    theory.rates.push_back(rate_of(comparison, v, theory.best_loss));
  }
  theory.staleness = pairs_of(comparison, theory.rates, target);
  return theory;
}

}  // namespace trireme::train
