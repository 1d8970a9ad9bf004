// How far apart the cores are: the time a cache line takes from one to another.
#pragma once
#include <optional>

namespace trireme::bench {

// One-way nanoseconds of a flag bounced between two threads on this process's first two cores; nothing where there is
// only one. A millisecond or so; the best of several tries, since what disturbs it only ever adds.
std::optional<double> core_ping_ns();

// Virtual cores may share a last-level cache or not, and the host may change that at any time.
inline constexpr double kFarNs = 80;
inline const char* state_of(double ping_ns) { return ping_ns < kFarNs ? "near" : "far"; }

}  // namespace trireme::bench
