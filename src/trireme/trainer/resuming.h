// How a run goes on from the newest whole checkpoint: the model first, then, once the strategy has begun, what workers
// had of their own.
#pragma once
#include <string>
#include <vector>

#include "trireme/train/checkpoint/worker_state.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/learner/held_model.h"

namespace trireme::train {

class Resuming {
 public:
  Resuming(const Config& config, Communicator& everyone, HeldModel& held, Learners& learners, sync::Strategy& strategy)
      : config_(config), all_(everyone), held_(held), learners_(learners), strategy_(strategy) {}

  // Model, optimizer and schedule; returns where the run was. `tells`: this worker tells the user at once what was
  // skipped. Collective. Throws DataError where there is no such checkpoint.
  Place load(RateSchedule& schedule, bool tells);
  // What was kept besides the model. What will not be as it would have been is in notes(). Collective.
  void restore_own(const Place& place);
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const Config& config_;
  Communicator& all_;
  HeldModel& held_;
  Learners& learners_;
  sync::Strategy& strategy_;
  std::string file_;  // the checkpoint
  WorkerStates own_;  // what that keeps of workers
  std::vector<std::string> notes_;
};

}  // namespace trireme::train
