// The plans behind the list in members.inc. direct, inlined and staged are for every collective, by call.what.
#pragma once
#include "trireme/collective/schedule.h"

namespace trireme::schedules {

#define ALGORITHM(what, name, summary, shared, canonical, pattern, plan, ...) Schedule plan(const Call& call);
#include "trireme/collective/schedules/members.inc"
#undef ALGORITHM

}  // namespace trireme::schedules
