#include "trireme/train/loop/marks.h"

#include <algorithm>
#include <array>

namespace trireme::train {

void Marks::add(const StepOutcome& outcome, double samples, double share) {
  test_.reset();
  part_.loss += outcome.loss * samples;
  part_.correct += outcome.accuracy * outcome.scored * share;
  part_.scored += outcome.scored * share;
  part_.samples += samples;
}

bool Marks::gather(bool asked) {
  std::array sums{part_.loss, part_.correct, part_.scored, part_.samples, asked ? 1.0 : 0.0};
  crew_.sum(sums);
  part_ = {sums[0], sums[1], sums[2], sums[3]};
  return sums[4] > 0;
}

const Evaluation& Marks::judge(Place& place) {
  test_ = judged_.evaluate();
  schedule_.observe(test_->accuracy);
  consider(place);
  return *test_;
}

const Evaluation& Marks::judge_last(Place& place, bool moved) {
  if (moved || !test_) test_ = judged_.evaluate();
  consider(place);
  return *test_;
}

void Marks::consider(Place& place) const {
  if (config_.target > 0 && place.target_seconds < 0 && test_->accuracy >= config_.target) {
    place.target_seconds = place.train_seconds;
  }
  place.best_accuracy = std::max(place.best_accuracy, test_->accuracy);
}

}  // namespace trireme::train
