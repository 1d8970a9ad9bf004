#include "trireme/plan/efficiency.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/compress/codecs.h"
#include "trireme/plan/cosimulate.h"

namespace trireme::plan {

double batch_efficiency(double batch, double noise_scale) {
  return noise_scale > 0 ? 1 / (1 + batch / noise_scale) : 1;
}

double Efficiencies::relative(const Way& way) {
  const bool plain = way.strategy.kind == &sync::strategies().front() && compress::Choice::parse(way.compress).none();
  if (plain || way.workers == 1) return 1;  // the measure itself
  Lesson lesson;
  lesson.seed = question_.seed;
  const int workers = std::min(way.workers, lesson.most_workers);
  fewer_ |= workers < way.workers;
  auto [found, fresh] = known_.try_emplace({fmt::format("{} {}", way.strategy.text(), way.compress), workers}, 0.0);
  if (!fresh) return found->second;
  Job job = job_of(question_, way, {});
  job.workers = workers;
  try {
    found->second = std::clamp(cosimulate(question_.cluster, job, lesson).efficiency, 0.0, 1.0);
  } catch (const DataError&) {  // it diverged: gradients are no numbers any more
  }
  return found->second;
}

}  // namespace trireme::plan
