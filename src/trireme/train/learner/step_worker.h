// What learns in a step of training (sync/run_step.h): a worker's learners, each with a batch.
#pragma once
#include <functional>
#include <vector>

#include "trireme/data/loader.h"
#include "trireme/sync/run_step.h"
#include "trireme/train/learner/learners.h"

namespace trireme::train {

class StepWorker : public sync::Worker {
 public:
  // `clip`: the most norm of what a learner steps by, or gives to who does; 0: any. All must outlive it.
  StepWorker(Learners& learners, sync::Strategy& strategy, double clip)
      : learners_(learners), strategy_(strategy), clip_(clip) {}

  // Before a step: its batches, for as many learners, and whether this worker was asked to stop.
  void take(std::vector<data::Item> items, bool stop);
  const std::vector<data::Item>& items() const { return items_; }
  // How long a learner that computed for so many seconds is held up.
  Gradients::HoldUp hold_up;
  // Told of gradients that are not finite; the step is left out unless it throws.
  std::function<void(const std::vector<BadGradient>&)> on_bad;

  bool compute(const sync::Step& step) override;
  void update(const sync::Step& step) override;
  void lend() override;
  void take_back() override;

  // After a step: what the learners measured, as of one, and their gradients are dropped.
  StepOutcome finish();

 private:
  bool finite();
  void clip(int k);

  Learners& learners_;
  sync::Strategy& strategy_;
  const double clip_;
  std::vector<data::Item> items_;
  bool stop_ = false;
  std::vector<StepOutcome> outcomes_;
};

}  // namespace trireme::train
