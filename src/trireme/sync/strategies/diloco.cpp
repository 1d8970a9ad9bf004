// DiLoCo (Douillard et al., 2023): local steps, and an outer optimizer on what they achieved. Every H steps
//   Δ ← θ − (1/N) Σ_i θ_i        m ← μ m + Δ        θ ← θ − η_o (Δ + μ m)        θ_i ← θ
// η_o and μ are the outer rate and the outer (Nesterov) momentum. η_o = 1, μ = 0 is local SGD. 2(N−1)/N of a model sent
// every H steps. θ is the model.
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

class DiLoCo : public OneLearner {
 public:
  DiLoCo(const Context& context, std::int64_t period, double rate, double momentum)
      : OneLearner(context.world),
        period_(period),
        rate_(static_cast<float>(rate)),
        mu_(static_cast<float>(momentum)),
        mean_(context) {}

  void start() override {
    theta_ = FlatVector(world_, weights_);
    momentum_ = FlatVector(world_, weights_.size());
  }
  bool meets(std::int64_t step) const override { return is_last_of(period_, step); }
  void after_step(const Step& step) override {
    moved_ = true;
    if (meets(step.number)) outer_step();
  }
  // What was learned since the last round counts too.
  void finish() override {
    if (moved_) outer_step();
  }
  void model(std::span<float> out) override {
    copy(theta_.span(), out);
    report_.consensus = distance_to(world_, theta_.span(), weights_);
  }
  std::vector<Kept> state() override { return {{"theta", theta_.span()}, {"momentum", momentum_.span()}}; }
  std::vector<double> numbers() const override { return {moved_ ? 1.0 : 0.0}; }
  void set_numbers(std::span<const double> numbers) override { moved_ = only_of(numbers) != 0; }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return mean_.coded(); }
  Report report() const override { return mean_.report(report_); }

 private:
  void outer_step() {
    {
      Waiting waiting(report_);
      mean_(weights_, theta_.span(), weights_);
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const float delta = theta_[i] - weights_[i];
      momentum_[i] = mu_ * momentum_[i] + delta;
      theta_[i] -= rate_ * (delta + mu_ * momentum_[i]);
      weights_[i] = theta_[i];
    }
    moved_ = false;
  }

  const std::int64_t period_;  // H
  const float rate_;           // η_o
  const float mu_;
  ModelMean mean_;
  FlatVector theta_;
  FlatVector momentum_;  // m
  bool moved_ = false;
};

}  // namespace

StrategyKind diloco() {
  return {
      .name = "diloco",
      .summary = "local steps; every H of them an outer step with momentum",
      .settings = {{"H", "16", "steps between outer steps", whole_number(1, kMany)},
                   {"outer-lr", "0.7", "learning rate of the outer step", number(0, 10)},
                   {"outer-momentum", "0.5", "Nesterov momentum of the outer step", number(0, 0.9999)}},
      .compresses = StrategyKind::Compresses::models,
      .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
        return std::make_unique<DiLoCo>(context, values.integer("H"), values.number("outer-lr"),
                                        values.number("outer-momentum"));
      },
      .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
        if (!is_last_of(values.integer("H"), at.step)) return {};
        return {mean(Exchange::Of::model, Moment::after_step, Moment::after_step), late(pass(Moment::after_step, 6))};
      }};
}

}  // namespace trireme::sync
