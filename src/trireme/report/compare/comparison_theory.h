// What theory says of the variants of a comparison, beside what was measured.
//
// m workers take T steps each. For smooth losses synchronous, local and gossip SGD come as near as O(1/√(mT)) (Lian et
// al. 2017, "Can Decentralized Algorithms Outperform Centralized Algorithms?"; Stich 2019, "Local SGD Converges Fast
// and Communicates Little"). For convex losses the mean regret of SGD under SSP with staleness s is at most
// 4FL·√(2(s+1)P/T), T the updates of all P workers (Ho et al. 2013, "More Effective Distributed ML via a Stale
// Synchronous Parallel Parameter Server").
//
// Both speak of a mean over the steps so far. So the gap measured here is the mean training loss of all steps until
// then, less the lowest training loss that any run of the comparison saw between two tests: the least that is known to
// be possible. Bounds are worst cases, and deep nets are not convex: a slope near −1/2 is a hint and proves nothing.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trireme/report/compare/comparison.h"

namespace trireme::train {

struct GapPoint {
  double step = 0;  // of a worker, T
  double gap = 0;
};

enum class Bound {
  kNone,     // none that is put beside it
  kSpeedup,  // O(1/√(mT))
  kSsp,      // 4FL·√(2(s+1)P/T)
};

struct Rate {
  Bound bound = Bound::kNone;
  double workers = kUnknown;  // m
  std::vector<GapPoint> points;
  double slope = kUnknown;     // of log gap by log T, by least squares; from three points on
  double constant = kUnknown;  // c of c/√(mT): least squares of the logarithms with the slope fixed at −1/2
};
// Points without a positive step and gap are left out.
Rate fit_rate(const std::vector<GapPoint>& points, double workers);

// Two variants that differ in the staleness alone. Measured ratios are kUnknown where one side is.
struct StalenessPair {
  std::size_t variant = 0, against = 0;
  double s = 0, against_s = 0;
  double gap = kUnknown;       // after as many steps
  double steps = kUnknown;     // of a worker, to the target
  double seconds = kUnknown;   // to the target
  double bound_gap() const;    // √((s+1)/(s'+1)): of the bounds after as many steps
  double bound_steps() const;  // (s+1)/(s'+1): of the steps after which the bounds are as low
};

struct Theory {
  double best_loss = kUnknown;  // the lowest, see above
  std::vector<Rate> rates;      // of each variant, the mean over its seeds
  std::vector<StalenessPair> staleness;
};
Theory theory_of(const Comparison& comparison, double target);

// The gap of one run at each point of its curve.
std::vector<GapPoint> gaps_of(const ComparedRun& run, double best_loss);
// Between two points as if the line were straight on logarithmic axes; kUnknown outside.
double gap_at(const std::vector<GapPoint>& points, double step);

// A sentence for each group of variants about which theory says the same, and one about what all this is worth; nothing
// where too little is known.
std::vector<std::string> theory_words(const Comparison& comparison, const Theory& theory, double target, bool unicode);

// "theory" in compare.json.
nlohmann::ordered_json to_json(const Comparison& comparison, const Theory& theory, double target);

}  // namespace trireme::train
