#include "trireme/trainer/saving.h"

#include "trireme/train/checkpoint/server_state.h"

namespace trireme::train {

void Saving::start_writing() {
  checkpoints_.emplace(config_.out, static_cast<int>(config_.keep_last), /*keep_best=*/true,
                       work_.objective.first().higher_is_better);
}

NamedTensors Saving::own_states() {
  const bool some = strategy_.traits().uses_weights || !strategy_.coded().empty();
  if (!some || strategy_.traits().owns_step) return {};
  return meter_.without([&] {
    worker_.lend();
    return gather_tensors(all_, worker_state(strategy_, learners_, held_.replica_part()));
  });
}

void Saving::save(const Place& place, std::optional<double> metric, NamedTensors own) {
  judged_.show([&] {
    auto& learner = learners_.first();
    if (!checkpoints_ && !held_.keeps_together()) return;
    if (strategy_.traits().owns_step) {
      own = worker_state(strategy_, learners_, held_.replica_part());
      to_optimizer(strategy_, learner);
      own = held_.gathered(std::move(own));
    }
    auto kept = keep(learner.model_state(), learner.optimizer_state(), schedule_, place, config_, work_.objective,
                     data::look_of(work_.data));
    kept.tensors = held_.whole(kept.tensors);
    if (!checkpoints_) return;
    kept.tensors.insert(kept.tensors.end(), own.begin(), own.end());
    checkpoints_->save(place.step, kept.tensors, kept.metadata, metric);
  });
}

}  // namespace trireme::train
