// What codes and clipping make of a strategy's own pace.
#pragma once
#include "trireme/sync/pace.h"

namespace trireme::compress {
class Rules;
}

namespace trireme::sync {

class Strategy;
struct StrategyKind;

// Of a strategy whose own pace for this momentum is `own`, where it sends codes by these rules.
Pace pace_with_codes(const StrategyKind& kind, const compress::Rules& rules, const Pace& own, double momentum);

// The most norm of what a worker clips; 0: any. `asked`: of the mean over the batches of all that a gradient is
// exchanged with. Where the step is somebody else's a worker clips its own share of that mean.
double own_clip(const Strategy& strategy, const Pace& pace, double asked, int workers);

}  // namespace trireme::sync
