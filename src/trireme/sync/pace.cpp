#include "trireme/sync/pace.h"

#include "trireme/sync/strategies.h"

namespace trireme::sync {

Pace pace_with_codes(const Kind& kind, const compress::Rules& rules, const Pace& own, double momentum) {
  // The codec has the momentum, and all of a gradient arrives in the end: the rate is what it is without the codec.
  if (rules.takes_momentum()) return {.momentum = 0};
  const bool late = rules.lags() && kind.compresses == Kind::Compresses::gradients;
  return late && own.momentum > 0 ? late_pace(momentum) : own;
}

}  // namespace trireme::sync
