#include "trireme/cluster/sim/learning/efficiency.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/cluster/sim/learning/cosimulate.h"
#include "trireme/compress/codecs.h"

namespace trireme::cluster {

double batch_efficiency(double batch, double noise_scale) {
  return noise_scale > 0 ? 1 / (1 + batch / noise_scale) : 1;
}

double Efficiencies::relative(const Candidate& candidate) {
  const bool plain =
      candidate.strategy.kind == &sync::strategies().front() && compress::Choice::parse(candidate.compress).none();
  if (plain || candidate.workers == 1) return 1;  // the measure itself
  LearningTrialOptions options;
  options.seed = question_.seed;
  const int workers = std::min(candidate.workers, options.most_workers);
  fewer_ |= workers < candidate.workers;
  auto [found, fresh] =
      known_.try_emplace({fmt::format("{} {}", candidate.strategy.text(), candidate.compress), workers}, 0.0);
  if (!fresh) return found->second;
  Job job = job_of(question_, candidate, {});
  job.workers = workers;
  try {
    found->second = std::clamp(cosimulate(question_.cluster, job, options).efficiency, 0.0, 1.0);
  } catch (const DataError&) {  // it diverged: gradients are no numbers any more
  }
  return found->second;
}

}  // namespace trireme::cluster
