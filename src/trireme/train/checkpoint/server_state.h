// What parameter servers keep of each parameter is what an optimizer would: moments, and how many updates there were.
// Checkpoints have it as an optimizer's, so that any run goes on with it, and any reader finds it.
#pragma once
#include "trireme/sync/strategy.h"
#include "trireme/train/learner/learner.h"

namespace trireme::train {

// After model(): what the servers have, to the learner's optimizer, which steps nothing itself.
void to_optimizer(sync::Strategy& strategy, Learner& learner);
// Before begin(): what the servers begin with; `steps` were made where the optimizer does not count them.
void from_optimizer(Learner& learner, sync::Strategy& strategy, std::int64_t steps);

}  // namespace trireme::train
