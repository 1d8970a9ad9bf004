// What a run has seen since its last mark, and how good its model is there.
#pragma once
#include <optional>

#include "trireme/report/recorder.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/learner/judged_model.h"

namespace trireme::train {

class Marks {
 public:
  Marks(const Config& config, const Objective& objective, WorkerGroup& group, RateSchedule& schedule,
        JudgedModel& judged)
      : config_(config), objective_(objective), group_(group), schedule_(schedule), judged_(judged) {}

  // After each step: what it gave for so many samples of this worker. `share`: of what was scored, this worker's.
  void add(const StepOutcome& outcome, double samples, double share);
  // Of this worker, since the last mark; of all of them after gather().
  double samples() const { return part_.samples; }

  // All workers' sums; whether any was `asked` to stop. Collective.
  bool gather(bool asked);
  // How good the model is now: told to the schedule and kept in `place`. Collective.
  const Evaluation& judge(Place& place);
  // At the end of a run, where that is not known; `moved`: the weights have since. Collective.
  const Evaluation& judge_last(Place& place, bool moved);
  // What was gathered; from here on anew.
  Recorder::Part take() { return std::exchange(part_, {}); }

 private:
  // Whether that is the best so far, and what was aimed at.
  void consider(Place& place) const;

  const Config& config_;
  const Objective& objective_;
  WorkerGroup& group_;
  RateSchedule& schedule_;
  JudgedModel& judged_;
  Recorder::Part part_;
  std::optional<Evaluation> test_;  // of the weights as they are
};

}  // namespace trireme::train
