// Runs a combination and the same training on one worker, and says how far apart they end.
#pragma once
#include <string>
#include <vector>

#include "trireme/cli/bench/combination.h"

namespace trireme::bench {

struct Equality {
  enum class Kind { equal, differs, refused, failed } kind = Kind::equal;
  double off_by = 0;               // worst tensor: max|Δ| / max|reference|
  double bound = 0;                // what rounding may make of it
  std::string why;                 // the worst tensor, or what the program said
  std::vector<std::string> lines;  // that do the same again, in a shell
};
std::string_view name(Equality::Kind kind);

// What summing in another order may change: one step rounds to 2^-24 of a weight and sums a gradient of some hundred
// terms, about 2e-7 in all; what was off is trained on, and kSlack is for how training spreads it (docs/equality.md).
inline constexpr double kRoundingOfAStep = 2e-7, kSlack = 25;

// In folders below `folder`, made anew. Throws Error where one worker cannot train.
Equality judge(const Combination& combination, const std::string& folder);

}  // namespace trireme::bench
