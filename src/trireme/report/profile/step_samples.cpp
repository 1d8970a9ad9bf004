#include "trireme/report/profile/step_samples.h"

#include <algorithm>

#include "trireme/base/median.h"
#include "trireme/grad/gradient_exchange.h"

namespace trireme::train {

template <typename Part>
std::vector<double> StepSamples::each(const Part& part) const {
  std::vector<double> values;
  for (const auto& step : steps_) values.push_back(part(step));
  return values;
}

double StepSamples::typical_s() const {
  return median(each([](const Step& step) { return step.forward + step.backward + step.optimizer; }));
}

void StepSamples::fill(cluster::Profile& profile, const std::vector<ReadyGradient>& ready) const {
  const auto times = [&](double Step::*part) {
    return cluster::quantiles_of(each([&](const Step& step) { return step.*part; }));
  };
  const auto compute = each([](const Step& step) { return step.forward + step.backward + step.optimizer; });
  profile.forward_s = times(&Step::forward);
  profile.backward_s = times(&Step::backward);
  profile.optimizer_s = times(&Step::optimizer);
  // Medians do not add up; what belongs to no part is the step's less the parts'.
  const auto other = times(&Step::other);
  const auto whole = cluster::quantiles_of(each([](const Step& step) { return step.own(); }));
  const double middle = profile.forward_s.p50 + profile.backward_s.p50 + profile.optimizer_s.p50 + other.p50;
  profile.step_s = {std::min(whole.p10, middle), middle, std::max(whole.p90, middle)};
  const double typical = median(compute);
  profile.residuals.clear();
  for (double seconds : compute) profile.residuals.push_back(typical > 0 ? seconds / typical : 1);

  profile.gradients.clear();
  const double last = ready.empty() ? 0 : ready.back().ready_s;
  const auto& backward = profile.backward_s;
  const double before = std::max(0.0, backward.p50 - last);
  // They are of other steps than the median: where those were slower, all come sooner in proportion.
  const double pace = last > backward.p50 ? backward.p50 / last : 1;
  for (const auto& gradient : ready) {
    // What lies before the first gradient and what between them varies alike.
    const double at = before + pace * gradient.ready_s, share = backward.p50 > 0 ? at / backward.p50 : 0;
    profile.gradients.push_back({.name = gradient.name,
                                 .elements = gradient.elements,
                                 .rows = gradient.rows,
                                 .ready_s = {share * backward.p10, at, share * backward.p90}});
  }
  const auto bytes = static_cast<double>(profile.gradient_bytes());
  profile.update_s_per_byte = bytes > 0 ? profile.optimizer_s.p50 / bytes : 0;
}

}  // namespace trireme::train
