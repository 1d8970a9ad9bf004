// Strategies that meet, in a co-simulation: the real ones, on ranks that are threads.
#include "trireme/cluster/sim/learning/learning_trial.h"
#include "trireme/sync/exchange/flat_exchange.h"
#include "trireme/sync/pace_with_codes.h"
#include "trireme/sync/run_step.h"

namespace trireme::cluster {
namespace {

class TrialWorker : public sync::Worker {
 public:
  TrialWorker(const LearningTrial& trial, const sync::Choice& choice, Communicator& world)
      : school_(trial),
        world_(world),
        strategy_(choice.make({.world = world,
                               .steps_per_epoch = trial.options.steps,
                               .total_steps = trial.options.steps,
                               .seed = trial.job.seed,
                               .tensors = SmallModel::tensors(),
                               .compress = trial.rules,
                               .momentum = trial.rules.takes_momentum() ? trial.options.momentum : 0})),
        pace_(pace_with_codes(*choice.kind, trial.rules, strategy_->pace(trial.options.momentum),
                              trial.options.momentum)) {
    const auto& traits = strategy_->traits();
    const int learners = std::max(1, traits.learners);
    for (int k = 0; k < learners; ++k) {
      weights_.push_back(world.allocate<float>(SmallModel::kCount));
      gradients_.push_back(world.allocate<float>(SmallModel::kCount));
      std::ranges::copy(trial.model.start(), weights_.back().get());
      replicas_.push_back({of(weights_.back()), traits.uses_gradient ? of(gradients_.back()) : std::span<float>()});
      optimizers_.emplace_back(pace_.momentum);
    }
  }

  void learn(LossCurve& curve) {
    strategy_->begin(replicas_);
    const auto learners = static_cast<std::int64_t>(replicas_.size());
    for (std::int64_t k = 0; k < school_.most_steps; ++k) {
      sync::run_step(*strategy_, *this, {k, school_.options.lr * pace_.rate});
      if ((k + 1) % kLook != 0) continue;
      if (look(curve, school_.samples_of((k + 1) * learners))) break;
    }
    while (strategy_->drain()) {  // what is under way comes to its end on every rank
    }
  }

 private:
  static std::span<float> of(const std::shared_ptr<float[]>& memory) { return {memory.get(), SmallModel::kCount}; }

  bool compute(const sync::Step& step) override {
    const auto& traits = strategy_->traits();
    for (std::size_t j = 0; j < replicas_.size(); ++j) {
      auto gradient = of(gradients_[j]);
      const int from = step.number < strategy_->together() ? 0 : world_.rank() + static_cast<int>(j) * world_.size();
      school_.model.gradient(of(weights_[j]), from, step.number, school_.options.batch, gradient);
      if (!traits.shares_gradient) continue;
      for (float& g : gradient) g /= static_cast<float>(world_.size());
    }
    sync::exchange_flat(*strategy_, of(gradients_[0]), SmallModel::tensors());
    return true;
  }

  void update(const sync::Step& step) override {
    for (std::size_t j = 0; j < replicas_.size(); ++j) {
      sync::shorten(of(gradients_[j]), sync::stricter(pace_.clip, strategy_->most_norm()));
      optimizers_[j].step(of(weights_[j]), of(gradients_[j]), step.lr);
    }
  }

  // The same answer on every rank.
  bool look(LossCurve& curve, double samples) {
    Weights shown(SmallModel::kCount);
    strategy_->model(shown);
    std::vector<double> loss{world_.rank() == 0 ? school_.model.loss(shown) : 0.0};
    world_.broadcast(loss, 0);
    if (!std::isfinite(loss[0])) return true;
    curve.add(samples, loss[0]);
    return curve.reached(school_.target);
  }

  const LearningTrial& school_;
  Communicator& world_;
  std::vector<std::shared_ptr<float[]>> weights_, gradients_;  // shared: as the communicator gives them
  std::unique_ptr<sync::Strategy> strategy_;
  const sync::Pace pace_;
  std::vector<sync::Replica> replicas_;
  std::vector<Stepper> optimizers_;
};

}  // namespace

LossCurve learn_together(const LearningTrial& trial, const sync::Choice& choice) {
  std::vector<LossCurve> curves(static_cast<std::size_t>(trial.workers));
  run_threads(trial.workers, [&](Communicator& world) {
    TrialWorker(trial, choice, world).learn(curves[static_cast<std::size_t>(world.rank())]);
  });
  return curves[0];
}

}  // namespace trireme::cluster
