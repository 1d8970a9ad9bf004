#include "trireme/sync/learner_tuner.h"

namespace trireme::sync {

Advice LearnerTuner::window(double samples_per_s) {
  if (settled_) return Advice::stay;
  if (before_ >= 0 && !(samples_per_s > before_ * (1 + gain_))) {
    settled_ = true;
    --learners_;
    return Advice::fewer;
  }
  if (learners_ >= most_) {
    settled_ = true;
    return Advice::stay;
  }
  before_ = samples_per_s;
  ++learners_;
  return Advice::more;
}

}  // namespace trireme::sync
