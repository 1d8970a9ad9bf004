// How many learners a worker should have (CROSSBOW, §4.4): one more as long as that makes training faster.
#pragma once

namespace trireme::sync {

enum class Advice { stay, more, fewer };

// Deterministic: ranks that are fed the same numbers give the same advice.
class LearnerTuner {
 public:
  // One more learner is worth it if samples per second grow by more than the share `gain`.
  explicit LearnerTuner(int learners = 1, int most = 8, double gain = 0.1)
      : learners_(learners), most_(most), gain_(gain) {}

  // What to do after a window of training with learners() that ran at this rate. The caller does it; learners() counts
  // it in. Windows must be alike, without the first steps after a change.
  Advice window(double samples_per_s);

  int learners() const { return learners_; }
  // Whether it will say `stay` from now on.
  bool settled() const { return settled_; }

 private:
  int learners_;
  const int most_;
  const double gain_;
  double before_ = -1;  // samples/s with one learner fewer; none at first
  bool settled_ = false;
};

}  // namespace trireme::sync
