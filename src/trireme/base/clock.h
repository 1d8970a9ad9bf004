// Monotonic time and deadlines. Reading the clock costs some 24 ns: look at it rarely in hot loops.
#pragma once
#include <chrono>
#include <cstdint>

namespace trireme {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;

// Seconds since an arbitrary start.
inline double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// A point in time by which a wait must end. Every wait has one.
class Deadline {
 public:
  static Deadline in(Duration span) { return Deadline(Clock::now() + span, span); }
  static Deadline in_seconds(double seconds) {
    return in(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  bool passed() const { return Clock::now() >= at_; }
  // Never negative.
  Duration left() const {
    auto rest = std::chrono::duration_cast<Duration>(at_ - Clock::now());
    return rest > Duration::zero() ? rest : Duration::zero();
  }
  int left_ms() const { return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left()).count()); }
  // How long was given at the start, for messages.
  double span_seconds() const { return std::chrono::duration<double>(span_).count(); }

 private:
  Deadline(Clock::time_point at, Duration span) : at_(at), span_(span) {}
  Clock::time_point at_;
  Duration span_;
};

}  // namespace trireme
