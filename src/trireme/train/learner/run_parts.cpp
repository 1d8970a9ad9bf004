#include "trireme/train/learner/run_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trireme::train {

data::SamplerOptions sampler_options(const Config& config, const Workload& work, int rank, int workers) {
  return {.size = work.data.train->size(),
          .batch = config.batch * config.accumulate,
          .rank = rank,
          .workers = workers,
          .seed = static_cast<std::uint64_t>(config.seed),
          .micro_batch = config.deterministic ? config.micro_batch : 0};
}

ScheduleOptions schedule_options(const Config& config, const Workload& work, std::int64_t steps_per_epoch,
                                 int workers) {
  return {.base_lr = config.lr,
          .total_steps = config.steps > 0 ? config.steps : config.epochs * steps_per_epoch,
          .steps_per_epoch = steps_per_epoch,
          .warmup_epochs = config.warmup,
          .global_batch = config.batch * config.accumulate * workers,
          .reference_batch = config.reference_batch,
          .higher_is_better = work.objective.first().higher_is_better};
}

std::string name_bad(const std::vector<BadGradient>& bad, std::int64_t step) {
  std::vector<std::string> where;
  for (const auto& one : bad) where.push_back(fmt::format("'{}' on rank {}", one.parameter, one.rank));
  return fmt::format("step {}: the gradient of {} is not finite", step, fmt::join(where, ", "));
}

StepOutcome as_one(const std::vector<StepOutcome>& outcomes) {
  StepOutcome all = outcomes.front();
  if (outcomes.size() == 1) return all;
  double loss = 0;
  Score score;
  for (const auto& one : outcomes) {
    loss += one.loss / static_cast<double>(outcomes.size());
    score.sum += one.score.sum;
    score.of += one.score.of;
    all.stop |= one.stop;
  }
  all.loss = loss;
  all.score = score;
  return all;
}

}  // namespace trireme::train
