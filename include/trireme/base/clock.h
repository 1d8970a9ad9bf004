// Monotonic time and deadlines. Reading the clock costs some 24 ns: look at it rarely in hot loops.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace trireme {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;

// Seconds since an arbitrary start.
inline double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// A point in time by which a wait must end. Every wait has one.
class Deadline {
 public:
  // A span below zero counts as zero, one above kLongest as kLongest.
  static Deadline in(Duration span) {
    span = std::clamp(span, Duration::zero(), kLongest);
    return Deadline(Clock::now() + span, span);
  }
  static Deadline in_seconds(double seconds) {
    constexpr double kMost = std::chrono::duration<double>(kLongest).count();
    if (!(seconds > 0)) return in(Duration::zero());
    if (seconds >= kMost) return in(kLongest);
    return in(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  bool passed() const { return Clock::now() >= at_; }
  // Never negative.
  Duration left() const {
    auto rest = std::chrono::duration_cast<Duration>(at_ - Clock::now());
    return rest > Duration::zero() ? rest : Duration::zero();
  }
  // Rounded up, so that it is zero only when the deadline has passed; for poll() and its like.
  int left_ms() const {
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
    return static_cast<int>(std::min<std::int64_t>(ms, std::numeric_limits<int>::max()));
  }
  // How long was given at the start, for messages.
  double span_seconds() const { return std::chrono::duration<double>(span_).count(); }

  static constexpr Duration kLongest = std::chrono::hours(24 * 365);

 private:
  Deadline(Clock::time_point at, Duration span) : at_(at), span_(span) {}
  Clock::time_point at_;
  Duration span_;
};

}  // namespace trireme
