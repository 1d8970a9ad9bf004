#include "trireme/train/learner/step_worker.h"

#include "trireme/train/learner/run_parts.h"

namespace trireme::train {

void StepWorker::take(std::vector<data::Item> items, bool stop) {
  items_ = std::move(items);
  stop_ = stop;
}

bool StepWorker::compute(const sync::Step& step) {
  const int count = static_cast<int>(items_.size());
  outcomes_.assign(items_.size(), {});
  learners_.held().begin_step();
  learners_.run(count, [&](int k) {
    learners_[k].update_with(step.lr);
    outcomes_[static_cast<std::size_t>(k)] =
        learners_[k].gradients->compute(items_[static_cast<std::size_t>(k)], stop_, hold_up);
  });
  const bool good = finite();
  for (int k = 0; k < count; ++k) {
    if (good && strategy_.traits().owns_step) clip(k);
    if (!good && strategy_.traits().uses_gradient)
      learners_[k].flat->clear_gradients();  // who expects one gets nothing
  }
  return good;
}

// The same answer on every worker that exchanges gradients: all of them know of every bad one.
bool StepWorker::finite() {
  for (std::size_t k = 0; k < items_.size(); ++k) {
    const auto found = learners_[static_cast<int>(k)].gradients->bad_gradients();
    if (found.empty()) continue;
    if (on_bad) on_bad(found);
    return false;
  }
  return true;
}

void StepWorker::clip(int k) {
  if (clip_ > 0) learners_[k].gradients->clip(clip_);
}

void StepWorker::update(const sync::Step& step) {
  if (learners_.first().gradients->steps_itself()) return;
  const int count = static_cast<int>(items_.size());
  for (int k = 0; k < count; ++k) clip(k);
  learners_.run(count, [&](int k) { learners_[k].step(step.lr); });
}

void StepWorker::lend() {
  if (strategy_.traits().owns_step) return;  // nobody here has moved them
  for (auto& learner : learners_) {
    if (learner->flat) learner->flat->download();
  }
}

void StepWorker::take_back() {
  for (auto& learner : learners_) {
    if (learner->flat) learner->flat->upload();
  }
}

StepOutcome StepWorker::finish() {
  learners_.held().end_step(*learners_.first().optimizer);
  for (auto& learner : learners_) learner->zero_grad();
  return as_one(outcomes_);
}

}  // namespace trireme::train
