// The lines above a run: what trains on what, with whom and how.
#pragma once
#include "trireme/train/crew.h"
#include "trireme/train/learners.h"
#include "trireme/train/progress.h"

namespace trireme::train {

RunHeader header_of(const Config& config, const Workload& work, const Communicator& world, const Crew& crew,
                    const sync::Strategy& strategy, Learners& learners);

}  // namespace trireme::train
