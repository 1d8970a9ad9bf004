// When workers that keep step ask each other whether one of them was told to stop: often enough to end within moments,
// seldom enough that it costs nothing. Asked after one step and answered after the next, so that nobody waits for what
// a strategy has under way, behind which the question travels.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "trireme/base/clock.h"
#include "trireme/train/group/worker_group.h"

namespace trireme::train {

// One per worker. Invariant: after the same step all have the same next_ and asking_, for they follow from sums over
// all of them.
class StopQuestion {
 public:
  // After a step; `meets`: all have come together in it anyway.
  bool due(std::int64_t step, bool meets) const {
    return !asking_ && step >= next_ && (meets || (step + 1) % kMost == 0);
  }

  // Collective, as is the answer.
  void ask(WorkerGroup& group, bool told, std::int64_t step) {
    const double now = now_seconds();
    group.start_sum(std::array{told ? 1.0 : 0.0, asked_s_ > 0 ? now - asked_s_ : 0});
    asking_ = true;
    steps_ = step - std::exchange(asked_, step);
    asked_s_ = now;
  }

  // What was asked has been sent.
  void settle(WorkerGroup& group) const {
    if (asking_) (void)group.await_sum();
  }

  // Whether any had been told to when all were asked; no, where nobody was.
  bool answer(WorkerGroup& group) {
    if (!std::exchange(asking_, false)) return false;
    const auto said = group.await_sum();
    const double seconds = said[1] / group.size();
    const double each = steps_ > 0 ? seconds / static_cast<double>(steps_) : 0;
    next_ = asked_ + (each > 0 ? static_cast<std::int64_t>(std::clamp(kWithin / each, 1.0, double{kMost})) : 1);
    return said[0] > 0;
  }

 private:
  static constexpr double kWithin = 0.2;     // seconds, about
  static constexpr std::int64_t kMost = 64;  // steps

  bool asking_ = false;
  std::int64_t next_ = 0, asked_ = 0, steps_ = 0;  // steps_: from the question before to the last
  double asked_s_ = 0;
};

}  // namespace trireme::train
