// When workers that keep step ask each other whether one of them was told to stop: often enough to end within moments,
// seldom enough that the question, for which all wait for the slowest, costs nothing.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "trireme/base/clock.h"
#include "trireme/train/crew.h"

namespace trireme::train {

// One per worker. Invariant: after the same step all have the same next_, for it follows from sums over all of them.
class StopQuestion {
 public:
  // After a step; `meets`: all have come together in it anyway.
  bool due(std::int64_t step, bool meets) const { return step >= next_ && (meets || (step + 1) % kMost == 0); }

  // Whether any was told to. Collective.
  bool ask(Crew& crew, bool told, std::int64_t step) {
    const double now = now_seconds();
    std::array<double, 2> said{told ? 1.0 : 0.0, asked_s_ > 0 ? now - asked_s_ : 0};
    crew.sum(said);
    const double seconds = said[1] / crew.size();
    const double each = step > asked_ ? seconds / static_cast<double>(step - asked_) : 0;
    next_ = step + (each > 0 ? static_cast<std::int64_t>(std::clamp(kWithin / each, 1.0, double{kMost})) : 1);
    asked_ = step;
    asked_s_ = now;
    return said[0] > 0;
  }

 private:
  static constexpr double kWithin = 0.2;     // seconds, about
  static constexpr std::int64_t kMost = 64;  // steps

  std::int64_t next_ = 0, asked_ = 0;
  double asked_s_ = 0;
};

}  // namespace trireme::train
