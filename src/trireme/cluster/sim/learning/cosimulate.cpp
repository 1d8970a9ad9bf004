#include "trireme/cluster/sim/learning/cosimulate.h"

#include "trireme/cluster/sim/learning/learning_trial.h"

namespace trireme::cluster {
namespace {

using sync::Exchange;

// Plain all-reduce: one learner with everyone's mean gradient.
LossCurve learn_plainly(const LearningTrial& trial) {
  LossCurve curve;
  auto weights = trial.model.start();
  Stepper optimizer(trial.options.momentum);
  Weights one(SmallModel::kCount), sum(SmallModel::kCount);
  for (std::int64_t k = 0; k < trial.most_steps; ++k) {
    std::ranges::fill(sum, 0.0f);
    for (int worker = 0; worker < trial.workers; ++worker) {
      trial.model.gradient(weights, worker, k, trial.options.batch, one);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i] / static_cast<float>(trial.workers);
    }
    optimizer.step(weights, sum, trial.options.lr);
    if ((k + 1) % kLook == 0) curve.add(trial.samples_of(k + 1), trial.model.loss(weights));
  }
  return curve;
}

double mean_of(const std::map<std::int64_t, std::int64_t>& stale) {
  double sum = 0, count = 0;
  for (const auto& [by, steps] : stale) {
    sum += static_cast<double>(by * steps);
    count += static_cast<double>(steps);
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

Learning cosimulate(const Cluster& cluster, const Job& job, const LearningTrialOptions& options) {
  const int asked = job.workers > 0 ? job.workers : cluster.workers();
  const int workers = std::clamp(asked, 1, options.most_workers);
  auto school_of = [&](std::string_view codec, std::string_view rules, double target, double steps) {
    return LearningTrial{job,     options, {codec.empty() ? "none" : codec, rules}, SmallModel(options.seed),
                         workers, target,  static_cast<std::int64_t>(steps)};
  };
  const auto plain = school_of("none", "", -kNever, options.steps);
  const auto reference = learn_plainly(plain);
  Learning learning;
  learning.target = reference.at(plain.samples_of(options.steps * 2 / 3));
  learning.reference = reference.samples_to(learning.target);

  const auto trial = school_of(job.compress, job.compress_rules, learning.target, options.patience * options.steps);
  const auto exchange_plan = job.strategy.exchange_plan({0, workers, 0, 1, 1, job.seed});
  const auto own_pace = std::ranges::find_if(exchange_plan, [](const Exchange& one) {
    return one.what == Exchange::What::push_pull || one.what == Exchange::What::ask ||
           one.what == Exchange::What::shared;
  });
  LossCurve curve;
  if (own_pace == exchange_plan.end()) {
    curve = learn_together(trial, job.strategy);
  } else {
    Job timed = job;
    timed.workers = workers;
    timed.steps = static_cast<int>(trial.most_steps);
    timed.accesses = true;
    timed.trace = false;
    const auto simulated = simulate(cluster, timed);
    learning.mean_stale = mean_of(simulated.stale);
    curve = learn_in_order(trial, simulated, *own_pace);
  }
  learning.samples = curve.samples_to(learning.target);
  learning.loss = curve.least();
  learning.efficiency = std::isfinite(learning.samples) ? learning.reference / learning.samples : 0;
  return learning;
}

}  // namespace trireme::cluster
