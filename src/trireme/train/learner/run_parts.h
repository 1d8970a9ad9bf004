// Small parts of the training loop that need nothing of its state. Private to the folder.
#pragma once
#include <string>
#include <vector>

#include "trireme/data/sampler.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/gradients.h"

namespace trireme::train {

data::SamplerOptions sampler_options(const Config& config, const Workload& work, int rank, int workers);
ScheduleOptions schedule_options(const Config& config, const Workload& work, std::int64_t steps_per_epoch, int workers);

// "step 7: the gradient of 'fc.weight' on rank 1 is not finite"
std::string name_bad(const std::vector<BadGradient>& bad, std::int64_t step);

// What several learners of a worker did at once, as one.
StepOutcome as_one(const std::vector<StepOutcome>& outcomes);

}  // namespace trireme::train
