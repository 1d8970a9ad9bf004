// The lines above a run: what trains on what, with whom and how.
#pragma once
#include "trireme/report/progress.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/learners.h"

namespace trireme::train {

RunHeader header_of(const Config& config, const Workload& work, const Communicator& world, const WorkerGroup& group,
                    const sync::Strategy& strategy, Learners& learners);

}  // namespace trireme::train
