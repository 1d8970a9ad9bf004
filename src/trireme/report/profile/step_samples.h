// Times of some steps of one worker, and the profile that they make.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/cluster/profile/profile.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/grad/gradient_exchange.h"

namespace trireme::train {

class StepSamples {
 public:
  // In seconds; `backward` without what it waited for an exchange, `other` what belongs to none of these.
  struct Step {
    double forward = 0, backward = 0, optimizer = 0, other = 0;
    double own() const { return forward + backward + optimizer + other; }
  };
  void add(const Step& step) { steps_.push_back(step); }
  std::size_t count() const { return steps_.size(); }
  // The median of what a step computes: forward, backward and the optimizer.
  double typical_s() const;

  // The times, the residuals and the gradients of a profile. `ready`: of the last backward of a step, whose end is the
  // end of backward.
  void fill(cluster::Profile& profile, const std::vector<ReadyGradient>& ready) const;

 private:
  template <typename Part>
  std::vector<double> each(const Part& part) const;
  std::vector<Step> steps_;
};

}  // namespace trireme::train
