// What the ways to learn in a co-simulation have in common. Private to the folder.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "trireme/base/infinite_time.h"
#include "trireme/cluster/sim/learning/cosimulate.h"
#include "trireme/cluster/sim/learning/small_model.h"
#include "trireme/compress/rules.h"
#include "trireme/optim/kinds.h"
#include "trireme/sync/clip.h"

namespace trireme::cluster {

using Weights = std::vector<float>;

// The loss is looked at every so many steps of a worker.
inline constexpr std::int64_t kLook = 5;

// What a worker, or a server, steps the model by: sgd, as trainers do.
class Stepper {
 public:
  explicit Stepper(double momentum) : rule_(optim::make_rule(optim::kSgd, {.momentum = momentum})) {}
  void step(std::span<float> weights, std::span<const float> gradient, double lr) {
    rule_->begin(lr, ++steps_);
    rule_->apply({.w = weights.data(), .g = gradient.data(), .kept = {velocity_.data()}, .n = weights.size()});
  }

 private:
  optim::MadeRule rule_;
  Weights velocity_ = Weights(SmallModel::kCount, 0.0f);
  std::uint64_t steps_ = 0;
};

// A loss as it fell, looked at after so many samples of all workers. Smoothed, as single looks are noisy.
class LossCurve {
 public:
  void add(double samples, double loss) {
    smooth_ = points_.empty() ? loss : 0.7 * smooth_ + 0.3 * loss;
    points_.emplace_back(samples, smooth_);
    least_ = std::min(least_, smooth_);
  }
  double at(double samples) const {
    for (const auto& [seen, loss] : points_) {
      if (seen >= samples) return loss;
    }
    return points_.empty() ? kNever : points_.back().second;
  }
  double samples_to(double target) const {
    double before_samples = 0, before = kNever;
    for (const auto& [samples, loss] : points_) {
      if (loss <= target) {
        if (!std::isfinite(before)) return samples;
        return before_samples + (samples - before_samples) * (before - target) / std::max(1e-12, before - loss);
      }
      before_samples = samples;
      before = loss;
    }
    return kNever;
  }
  double least() const { return least_; }
  bool reached(double target) const { return least_ <= target; }

 private:
  std::vector<std::pair<double, double>> points_;
  double smooth_ = 0, least_ = kNever;
};

struct LearningTrial {
  const Job& job;
  const LearningTrialOptions& options;
  const compress::Rules rules;
  const SmallModel model;
  const int workers;
  const double target;  // the trial ends once it is reached
  std::int64_t most_steps;
  double samples_of(std::int64_t steps) const { return static_cast<double>(steps) * workers * options.batch; }
};

// Strategies that meet: the real ones, on threads.
LossCurve learn_together(const LearningTrial& trial, const sync::Choice& choice);
// Those at their own pace, in the order that the simulator found; `exchange` is what they do.
LossCurve learn_in_order(const LearningTrial& trial, const Simulated& simulated, const sync::Exchange& exchange);

}  // namespace trireme::cluster
