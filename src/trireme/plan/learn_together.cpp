// Strategies that meet, in a co-simulation: the real ones, on ranks that are threads.
#include "trireme/plan/lesson.h"
#include "trireme/sync/compressed_mean.h"

namespace trireme::plan {
namespace {

class Pupil {
 public:
  Pupil(const School& school, const sync::Choice& choice, Communicator& world)
      : school_(school),
        world_(world),
        strategy_(choice.make({.world = world,
                               .steps_per_epoch = school.lesson.steps,
                               .total_steps = school.lesson.steps,
                               .seed = school.job.seed,
                               .tensors = SmallModel::tensors(),
                               .compress = school.rules,
                               .momentum = school.rules.takes_momentum() ? school.lesson.momentum : 0})),
        pace_(pace_with_codes(*choice.kind, school.rules, strategy_->pace(school.lesson.momentum),
                              school.lesson.momentum)) {
    if (strategy_->in_backward() && !school.rules.none()) {
      std::vector<compress::Tensor> tensors;
      for (const auto& one : SmallModel::tensors()) {
        tensors.push_back({one.name, one.count, one.rows, static_cast<int>(tensors.size())});
      }
      codes_ = std::make_unique<sync::CompressedMean>(world, tensors, strategy_->codes(), Op::sum);
    }
    const int learners = std::max(1, strategy_->learners());
    for (int k = 0; k < learners; ++k) {
      weights_.push_back(world.allocate<float>(SmallModel::kCount));
      gradients_.push_back(world.allocate<float>(SmallModel::kCount));
      std::ranges::copy(school.model.start(), weights_.back().get());
      replicas_.push_back(
          {of(weights_.back()), strategy_->takes_gradient() ? of(gradients_.back()) : std::span<float>()});
      optimizers_.push_back({pace_.momentum});
    }
  }

  void learn(LossCurve& curve) {
    if (!strategy_->in_backward()) strategy_->begin(replicas_);
    const auto learners = static_cast<std::int64_t>(replicas_.size());
    for (std::int64_t k = 0; k < school_.most_steps; ++k) {
      step(k);
      if ((k + 1) % kLook != 0) continue;
      if (look(curve, school_.samples_of((k + 1) * learners))) break;
    }
    while (strategy_->drain()) {  // what is under way comes to its end on every rank
    }
  }

 private:
  static std::span<float> of(const std::shared_ptr<float[]>& memory) { return {memory.get(), SmallModel::kCount}; }

  void step(std::int64_t k) {
    const sync::Step now{k, school_.lesson.lr * pace_.rate};
    const bool exchanges = strategy_->in_backward();
    if (!exchanges) strategy_->before_forward(now);
    for (std::size_t j = 0; j < replicas_.size(); ++j) {
      auto gradient = of(gradients_[j]);
      const int from = k < strategy_->together() ? 0 : world_.rank() + static_cast<int>(j) * world_.size();
      school_.model.gradient(of(weights_[j]), from, k, school_.lesson.batch, gradient);
      if (!strategy_->shares_gradient()) continue;
      for (float& g : gradient) g /= static_cast<float>(world_.size());
    }
    auto gradient = of(gradients_[0]);
    if (exchanges) codes_ ? (*codes_)(gradient) : world_.all_reduce(gradient, Op::sum);
    const double whole = strategy_->shares_gradient() && !exchanges ? world_.size() : 1;
    for (auto& one : gradients_) shorten(of(one), pace_.clip / whole);
    if (!exchanges) strategy_->after_backward(now);
    if (!strategy_->skips_step()) {
      for (std::size_t j = 0; j < replicas_.size(); ++j) {
        optimizers_[j].step(of(weights_[j]), of(gradients_[j]), now.lr);
      }
    }
    if (!exchanges) strategy_->after_step(now);
  }

  // The same answer on every rank.
  bool look(LossCurve& curve, double samples) {
    Weights shown(SmallModel::kCount);
    strategy_->in_backward() ? static_cast<void>(std::ranges::copy(of(weights_[0]), shown.begin()))
                             : strategy_->model(shown);
    std::vector<double> loss{world_.rank() == 0 ? school_.model.loss(shown) : 0.0};
    world_.broadcast(loss, 0);
    if (!std::isfinite(loss[0])) return true;
    curve.add(samples, loss[0]);
    return curve.reached(school_.target);
  }

  const School& school_;
  Communicator& world_;
  std::vector<std::shared_ptr<float[]>> weights_, gradients_;  // shared: as the communicator gives them
  std::unique_ptr<sync::Strategy> strategy_;
  const sync::Pace pace_;
  std::unique_ptr<sync::CompressedMean> codes_;
  std::vector<sync::Replica> replicas_;
  std::vector<Sgd> optimizers_;
};

}  // namespace

LossCurve learn_together(const School& school, const sync::Choice& choice) {
  std::vector<LossCurve> curves(static_cast<std::size_t>(school.workers));
  run_threads(school.workers, [&](Communicator& world) {
    Pupil(school, choice, world).learn(curves[static_cast<std::size_t>(world.rank())]);
  });
  return curves[0];
}

}  // namespace trireme::plan
