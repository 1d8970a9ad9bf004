// The momentum that sgd has with a strategy and codecs, what its rate is multiplied by, and how long a gradient may be.
//
// Old gradients and momentum do not mix: both look back, and what is stable with one of them swings with both. Where
// gradients are late there is no momentum, the rate makes up for it as far as is stable, and long gradients, which
// swing first, are cut. The constants were measured on small networks: docs/strategies.md and docs/compression.md.
#pragma once
#include <algorithm>

namespace trireme::compress {
class Rules;
}

namespace trireme::sync {

class Strategy;
struct StrategyKind;

struct Pace {
  double momentum = 0;
  double rate = 1;
  double clip = 0;  // the most norm of a gradient; 0: any
};

// For gradients that are applied late, in place of a momentum that was asked for.
inline Pace late_pace(double momentum) {
  constexpr double kMostRate = 8, kMostNorm = 1.5;
  if (momentum <= 0) return {};
  return {0, momentum < 1 ? std::min(1 / (1 - momentum), kMostRate) : kMostRate, kMostNorm};
}

// Of a strategy whose own pace for this momentum is `own`, where it sends codes by these rules.
Pace pace_with_codes(const StrategyKind& kind, const compress::Rules& rules, const Pace& own, double momentum);

// The most norm of what a worker clips; 0: any. `asked`: of the mean over the batches of all that a gradient is
// exchanged with. Where the step is somebody else's a worker clips its own share of that mean.
double own_clip(const Strategy& strategy, const Pace& pace, double asked, int workers);

}  // namespace trireme::sync
