// What can be said about the variants of a comparison: means over seeds, their spread, and what that allows to tell
// apart.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "trireme/train/comparison.h"

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
  Spread test_accuracy, best_accuracy, train_accuracy;
  Spread to_target;  // seconds, of the runs that got there
  Spread train_seconds, steps, samples_per_second;
  StepBreakdown step;  // mean
};
VariantSummary summarize(const Comparison& comparison, std::size_t variant, double target);

// Seconds of training until the test accuracy first was `target` at the end of an epoch; kUnknown where it never was.
double seconds_to(const ComparedRun& run, double target);

// The accuracy asked for, or else the lowest mean of the variants' final accuracies, rounded down to 0.01%: some run of
// every variant gets there. kUnknown where nothing finished.
double target_of(const Comparison& comparison);

// What is compared, most telling first.
struct Measure {
  std::string_view key;    // in compare.json
  std::string_view title;  // of a column
  enum Kind { kShare, kSeconds, kCount } kind;
  enum Better { kHigher, kLower, kNeither } better;
  Spread VariantSummary::*member;
};
std::span<const Measure> measures();

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
