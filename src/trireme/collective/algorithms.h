// The plans behind the list in algorithms.cpp, by file.
#pragma once
#include "trireme/collective/schedule.h"

namespace trireme::schedules {

// direct.cpp, inline.cpp, staged.cpp: every collective, by call.what.
Schedule direct(const Call& call);
Schedule inlined(const Call& call);
Schedule staged(const Call& call);

// ring.cpp
Schedule ring_all_reduce(const Call& call);
Schedule ring_all_gather(const Call& call);
Schedule ring_reduce_scatter(const Call& call);

}  // namespace trireme::schedules
