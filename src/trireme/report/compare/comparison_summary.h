// What can be said about the variants of a comparison: means over seeds, their spread, and what that allows to tell
// apart.
#pragma once
#include <string>
#include <vector>

#include "trireme/report/compare/comparison.h"

namespace trireme::train {

// Of the numbers of several seeds. Unknown ones do not count.
struct Spread {
  int count = 0;
  double mean = kUnknown, low = kUnknown, high = kUnknown;
  double deviation = kUnknown;  // standard deviation of the sample; from two on
};
Spread spread_of(const std::vector<double>& values);

struct VariantSummary {
  int finished = 0, unfinished = 0;  // runs; the numbers are of the finished ones
  Spread test_metric, best_metric, train_metric;
  Spread to_target, bytes_to_target, steps_to_target;  // of the runs that got there
  Spread train_seconds, steps, samples_per_second;
  Spread bytes_sent, compute_s, wait_s, wait_share;  // of a worker
  Spread staleness_mean, staleness_max, consensus;
  StepBreakdown step;  // mean
};
VariantSummary summarize(const Comparison& comparison, std::size_t variant, double target);

// The first point of its curve whose test reached `target`; null where none did.
const CurvePoint* point_at(const ComparedRun& run, double target);
// Seconds of training until then, and what a worker had sent; kUnknown where it never was.
double seconds_to(const ComparedRun& run, double target);
double bytes_to(const ComparedRun& run, double target);
double steps_to(const ComparedRun& run, double target);
// The share of a worker's time in which it waited.
double wait_share(const ComparedRun& run);

// What was asked for, or else the worst mean of the variants' final metrics, rounded to what is worse, to 0.01% or four
// digits: some run of every variant gets there. kUnknown where nothing finished.
double target_of(const Comparison& comparison);

// What is compared.
struct Measure {
  std::string key;    // in compare.json
  std::string title;  // of a column
  enum Kind { kShare, kSeconds, kCount, kBytes, kNumber } kind;
  enum Better { kHigher, kLower, kNeither } better;
  Spread VariantSummary::*member;
  double (*of)(const ComparedRun& run, double target);
  enum Shown { kAlways, kWhereKnown, kInFiles } shown;  // kWhereKnown: in a table, where some variant's is not 0
};
std::vector<Measure> measures(const ComparedBy& by);
// Those a table of these variants has, most telling first: what synchronization costs goes to the front where the way
// to synchronize is varied.
std::vector<Measure> shown_measures(const Comparison& comparison, const std::vector<VariantSummary>& summaries);

// How a variant stands beside the one with the best mean.
enum class Standing {
  kOpen,  // too few seeds to have a spread, or nothing to compare with
  kBest,
  kWithinSpread,  // not told apart from the best: see told_apart()
  kWorse,
};
// From three seeds on each: the means are further apart than √(s₁² + s₂²), s the standard deviations. From two on: the
// ranges from lowest to highest do not touch.
bool told_apart(const Spread& a, const Spread& b);
std::vector<Standing> standings(const std::vector<VariantSummary>& summaries, const Measure& measure);

}  // namespace trireme::train
