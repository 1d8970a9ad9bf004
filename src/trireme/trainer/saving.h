// What a run keeps of itself: the model, the optimizer, what workers have of their own, and where it is.
#pragma once
#include <optional>

#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/checkpoint/worker_state.h"
#include "trireme/train/learner/judged_model.h"
#include "trireme/trainer/training_meter.h"

namespace trireme::train {

class Saving {
 public:
  Saving(const Config& config, Workload& work, Communicator& everyone, HeldModel& held, Learners& learners,
         StepWorker& worker, sync::Strategy& strategy, const RateSchedule& schedule, JudgedModel& judged,
         TrainingMeter& meter)
      : config_(config),
        work_(work),
        all_(everyone),
        held_(held),
        learners_(learners),
        worker_(worker),
        strategy_(strategy),
        schedule_(schedule),
        judged_(judged),
        meter_(meter) {}

  // By the worker that writes.
  void start_writing();
  bool writes() const { return checkpoints_.has_value(); }
  // What is later than the step it goes on from is made again; -1: all of it.
  void forget_after(std::int64_t step) { checkpoints_->forget_after(step); }

  // What workers have of their own, all of it at the first one; neither its time nor its bytes are training's.
  // Collective. What servers have is read with the model, and not before.
  NamedTensors own_states();
  // `metric`: how good it is, where that is known. Collective.
  void save(const Place& place, std::optional<double> metric) { save(place, metric, own_states()); }
  void save(const Place& place, std::optional<double> metric, NamedTensors own);
  // Until all is written.
  void wait() {
    if (checkpoints_) checkpoints_->wait();
  }

 private:
  const Config& config_;
  Workload& work_;
  Communicator& all_;
  HeldModel& held_;
  Learners& learners_;
  StepWorker& worker_;
  sync::Strategy& strategy_;
  const RateSchedule& schedule_;
  JudgedModel& judged_;
  TrainingMeter& meter_;
  std::optional<Checkpoints> checkpoints_;  // of the worker that writes
};

}  // namespace trireme::train
