#include "trireme/sync/pace.h"

#include "trireme/sync/clip.h"
#include "trireme/sync/pace_with_codes.h"
#include "trireme/sync/strategies.h"

namespace trireme::sync {

Pace pace_with_codes(const StrategyKind& kind, const compress::Rules& rules, const Pace& own, double momentum) {
  // The codec has the momentum, and all of a gradient arrives in the end: the rate is what it is without the codec.
  if (rules.takes_momentum()) return {.momentum = 0};
  const bool late = rules.lags() && kind.compresses == StrategyKind::Compresses::gradients;
  return late && own.momentum > 0 ? late_pace(momentum) : own;
}

double own_clip(const Strategy& strategy, const Pace& pace, double asked, int workers) {
  const double most = stricter(asked > 0 ? asked : pace.clip, strategy.most_norm());
  const bool share = strategy.traits().shares_gradient && strategy.traits().owns_step;
  return most / (share ? workers : 1);
}

}  // namespace trireme::sync
