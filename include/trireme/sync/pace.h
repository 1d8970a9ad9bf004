// The momentum that sgd has with a strategy and codecs, what its rate is multiplied by, and how long a gradient may be.
//
// Old gradients and momentum do not mix: both look back, and what is stable with one of them swings with both. Where
// gradients are late there is no momentum, the rate makes up for it as far as is stable, and long gradients, which
// swing first, are cut. The constants were measured on small networks: docs/strategies.md and docs/compression.md.
#pragma once
#include <algorithm>

namespace trireme::sync {

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

}  // namespace trireme::sync
