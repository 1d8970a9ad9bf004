// The model that is judged and kept: the one that learns, or what the strategy says it is.
#pragma once
#include <vector>

#include "trireme/train/learner/held_model.h"
#include "trireme/train/learner/step_worker.h"

namespace trireme::train {

class JudgedModel {
 public:
  JudgedModel(HeldModel& held, Learners& learners, StepWorker& worker, sync::Strategy& strategy)
      : held_(held), learners_(learners), worker_(worker), strategy_(strategy) {}

  // While `use` runs, the first learner has it. Collective.
  template <typename Use>
  void show(const Use& use) {
    auto& learner = learners_.first();
    const bool apart = strategy_.traits().uses_weights;
    held_.average_buffers(learner.work, learner.net ? &*learner.net : nullptr, apart);
    if (!apart) return use();
    worker_.lend();
    shown_.resize(learner.flat->replica().weights.size());
    strategy_.model(shown_);
    FlatModel::Instead instead(*learner.flat, shown_);
    use();
  }

  // On the test data. Collective.
  Evaluation evaluate() {
    Evaluation found;
    show([&] { found = held_.evaluate(learners_.first().work); });
    return found;
  }

 private:
  HeldModel& held_;
  Learners& learners_;
  StepWorker& worker_;
  sync::Strategy& strategy_;
  std::vector<float> shown_;
};

}  // namespace trireme::train
