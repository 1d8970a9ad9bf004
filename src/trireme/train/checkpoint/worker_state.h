// What workers need besides the model to go on exactly, and each may have its own of: weights and optimizers of those
// that go apart, what a strategy is in the middle of, what codecs remember. In a checkpoint under
//
//   worker.<replica>.…   of one; worker.all.… what is the same for all. Where layers are cut,
//   worker.<replica>.t<part>.…
//     weights.<learner>.<parameter>    optimizer.<learner>.<parameter>.<quantity>    strategy.<parameter>.<quantity>
//     numbers    codes.<which>.<parameter>.<quantity>
#pragma once
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/group/replica_part.h"
#include "trireme/train/learner/learners.h"

namespace trireme::train {

// This worker's, copied. Between steps.
NamedTensors worker_state(sync::Strategy& strategy, Learners& learners, const ReplicaPart& here);
// Everyone's, each name once, at rank 0; elsewhere nothing. Collective.
NamedTensors gather_tensors(Communicator& everyone, NamedTensors mine);

struct WorkerStates {
  int replicas = 0, parts = 0;  // of the run that was stopped; 0: nothing was kept
  NamedTensors tensors;         // what this worker may need of them
  bool same_strategy = true;    // as now: else what that one was in the middle of means nothing
};
// Takes them out of rank 0's checkpoint, one at a time, for everyone. Collective.
WorkerStates deal(LoadedCheckpoint& checkpoint, Communicator& everyone, const ReplicaPart& here);
// Whether that checkpoint is of a run with this strategy, whatever its settings.
bool made_with(const LoadedCheckpoint& checkpoint, const std::string& file, const sync::StrategyKind& strategy);
// After the strategy has begun. Returns lines for the user: what is not as it would have been. Throws DataError naming
// the file where something is broken.
std::vector<std::string> restore(const WorkerStates& kept, sync::Strategy& strategy, Learners& learners,
                                 const ReplicaPart& here, const std::string& file);

}  // namespace trireme::train
