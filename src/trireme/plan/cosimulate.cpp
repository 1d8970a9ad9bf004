#include "trireme/plan/cosimulate.h"

#include "trireme/plan/lesson.h"

namespace trireme::plan {
namespace {

using sync::Exchange;

// Plain all-reduce: one learner with everyone's mean gradient.
LossCurve learn_plainly(const School& school) {
  LossCurve curve;
  auto weights = school.model.start();
  Sgd optimizer{school.lesson.momentum};
  Weights one(SmallModel::kCount), sum(SmallModel::kCount);
  for (std::int64_t k = 0; k < school.most_steps; ++k) {
    std::ranges::fill(sum, 0.0f);
    for (int worker = 0; worker < school.workers; ++worker) {
      school.model.gradient(weights, worker, k, school.lesson.batch, one);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i] / static_cast<float>(school.workers);
    }
    optimizer.step(weights, sum, school.lesson.lr);
    if ((k + 1) % kLook == 0) curve.add(school.samples_of(k + 1), school.model.loss(weights));
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

Learning cosimulate(const Cluster& cluster, const Job& job, const Lesson& lesson) {
  const int asked = job.workers > 0 ? job.workers : cluster.workers();
  const int workers = std::clamp(asked, 1, lesson.most_workers);
  auto school_of = [&](std::string_view codec, std::string_view rules, double target, double steps) {
    return School{job,     lesson, {codec.empty() ? "none" : codec, rules}, SmallModel(lesson.seed),
                  workers, target, static_cast<std::int64_t>(steps)};
  };
  const auto plain = school_of("none", "", -kNever, lesson.steps);
  const auto reference = learn_plainly(plain);
  Learning learning;
  learning.target = reference.at(plain.samples_of(lesson.steps * 2 / 3));
  learning.reference = reference.samples_to(learning.target);

  const auto school = school_of(job.compress, job.compress_rules, learning.target, lesson.patience * lesson.steps);
  const auto course = job.strategy.course({0, workers, 0, 1, 1, job.seed});
  const auto own_pace = std::ranges::find_if(course, [](const Exchange& one) {
    return one.what == Exchange::What::push_pull || one.what == Exchange::What::ask ||
           one.what == Exchange::What::shared;
  });
  LossCurve curve;
  if (own_pace == course.end()) {
    curve = learn_together(school, job.strategy);
  } else {
    Job timed = job;
    timed.workers = workers;
    timed.steps = static_cast<int>(school.most_steps);
    timed.accesses = true;
    timed.trace = false;
    const auto simulated = simulate(cluster, timed);
    learning.mean_stale = mean_of(simulated.stale);
    curve = learn_in_order(school, simulated, *own_pace);
  }
  learning.samples = curve.samples_to(learning.target);
  learning.loss = curve.least();
  learning.efficiency = std::isfinite(learning.samples) ? learning.reference / learning.samples : 0;
  return learning;
}

}  // namespace trireme::plan
