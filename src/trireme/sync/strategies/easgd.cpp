// Elastic averaging SGD (Zhang, Choromanska, LeCun, 2015), synchronous: workers are tied to a centre x̃ by springs.
// Every τ steps, from the same x_i and x̃,
//   x_i ← x_i − α (x_i − x̃)        x̃ ← x̃ + α Σ_i (x_i − x̃)
// The centre is kept by every worker: Σ (x_i − x̃) = N (mean − x̃), so one all-reduce of the models does, 2(N−1)/N of a
// model sent every τ steps. The paper's α is β/N with β = 0.9. The centre is the model.
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

constexpr double kBeta = 0.9;

class Easgd : public OneLearner {
 public:
  Easgd(const Context& context, std::int64_t period, double alpha)
      : OneLearner(context.world), period_(period), alpha_(static_cast<float>(alpha)), mean_of_all_(context) {}

  void start() override {
    centre_ = FlatVector(world_, weights_);
    mean_ = FlatVector(world_, weights_.size());
  }
  bool meets(std::int64_t step) const override { return is_last_of(period_, step); }
  void after_step(const Step& step) override {
    if (!meets(step.number)) return;
    {
      Waiting waiting(report_);
      mean_of_all_(weights_, centre_.span(), mean_.span());
    }
    const float beta = alpha_ * static_cast<float>(world_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      weights_[i] -= alpha_ * (weights_[i] - centre_[i]);
      centre_[i] += beta * (mean_[i] - centre_[i]);
    }
  }
  void finish() override { copy(centre_.span(), weights_); }
  void model(std::span<float> out) override {
    copy(centre_.span(), out);
    report_.consensus = distance_to(world_, centre_.span(), weights_);
  }
  std::vector<Kept> state() override { return {{"centre", centre_.span()}}; }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return mean_of_all_.coded(); }
  Report report() const override { return mean_of_all_.report(report_); }

 private:
  const std::int64_t period_;  // τ
  const float alpha_;
  ModelMean mean_of_all_;
  FlatVector centre_;  // x̃
  FlatVector mean_;
};

}  // namespace

StrategyKind easgd() {
  return {
      .name = "easgd",
      .summary = "every worker on its own, tied to a centre by a spring",
      .settings = {{"tau", "8", "steps between pulls", whole_number(1, kMany)},
                   {"alpha", "auto", "strength of a pull; auto: 0.9 / workers", number(0, 1, {"auto"})}},
      .compresses = StrategyKind::Compresses::models,
      .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
        const double alpha = values.is("alpha", "auto") ? kBeta / context.world.size() : values.number("alpha");
        return std::make_unique<Easgd>(context, values.integer("tau"), alpha);
      },
      .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
        if (!is_last_of(values.integer("tau"), at.step)) return {};
        return {mean(Exchange::Of::model, Moment::after_step, Moment::after_step), late(pass(Moment::after_step, 5))};
      }};
}

}  // namespace trireme::sync
