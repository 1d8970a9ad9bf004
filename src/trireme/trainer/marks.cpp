#include "trireme/trainer/marks.h"

#include <array>
#include <cmath>

namespace trireme::train {

void Marks::add(const StepOutcome& outcome, double samples, double share) {
  test_.reset();
  part_.loss += outcome.loss * samples;
  part_.score.sum += outcome.score.sum * share;
  part_.score.of += outcome.score.of * share;
  part_.samples += samples;
}

bool Marks::gather(bool asked) {
  std::array sums{part_.loss, part_.score.sum, part_.score.of, part_.samples, asked ? 1.0 : 0.0};
  group_.sum(sums);
  part_ = {sums[0], {sums[1], sums[2]}, sums[3]};
  return sums[4] > 0;
}

const Evaluation& Marks::judge(Place& place) {
  test_ = judged_.evaluate();
  schedule_.observe(test_->metrics.front());
  consider(place);
  return *test_;
}

const Evaluation& Marks::judge_last(Place& place, bool moved) {
  if (moved || !test_) test_ = judged_.evaluate();
  consider(place);
  return *test_;
}

void Marks::consider(Place& place) const {
  const auto& metrics = objective_.metrics;
  if (config_.target > 0 && place.target_seconds < 0 &&
      metrics.front().kind->reaches(test_->metrics.front(), config_.target)) {
    place.target_seconds = place.train_seconds;
  }
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    const double value = test_->metrics[k];
    if (!std::isfinite(value)) continue;
    const auto [at, fresh] = place.best.emplace(metrics[k].kind->key, value);
    if (!fresh && metrics[k].kind->better(value, at->second)) at->second = value;
  }
}

}  // namespace trireme::train
