#include "trireme/ops/conv/choice.h"

#include <algorithm>

#include "trireme/ops/parallel.h"
#include "trireme/ops/peak.h"

namespace trireme::ops {
namespace {

// Of the peak in products, and of memory beside the peak: as on the machines that were looked at, 20 to 25 GB/s of a
// core with 180 to 290 GFLOP/s.
constexpr double kReached = 0.92;
constexpr double kBytesPerFlop = 0.08;
constexpr double kCall = 3e-6;  // seconds of a call that does nothing

double peak() {
  static const double measured = measure_peak(0.005);
  return measured;
}

double predict(const OpCost& cost) {
  const double compute = 2 * cost.slots / (kReached * peak() * threads());
  return kCall + compute + cost.bytes / (kBytesPerFlop * peak());
}

}  // namespace

std::vector<ConvPick> guess_conv(const ConvShape& shape, Pass pass, int64_t limit, Accuracy roughest) {
  const ConvAlgorithm* const reference = conv_algorithms().front();
  std::vector<ConvPick> picks;
  for (const ConvAlgorithm* algorithm : conv_algorithms()) {
    if (algorithm == reference || algorithm->accuracy() > roughest || !algorithm->takes(shape, pass)) continue;
    const OpCost cost = algorithm->cost(shape, pass);
    if (cost.workspace <= limit) picks.push_back({.algorithm = algorithm, .predicted = predict(cost)});
  }
  if (picks.empty()) picks.push_back({.algorithm = reference, .predicted = predict(reference->cost(shape, pass))});
  std::ranges::stable_sort(picks, {}, &ConvPick::predicted);
  return picks;
}

}  // namespace trireme::ops
