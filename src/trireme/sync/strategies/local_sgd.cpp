// Local SGD (Stich, 2019): every worker steps on its own, and every H steps the models are averaged:
//   w_i ← w_i − η g_i(w_i);   every H steps  w_i ← (1/N) Σ_j w_j
// 2(N−1)/N of a model sent every H steps. H = 1 with plain SGD is the mean of gradients.
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

class LocalSgd : public OneLearner {
 public:
  LocalSgd(const Context& context, std::int64_t period) : OneLearner(context.world), period_(period), mean_(context) {}

  void start() override { mean_.start(weights_); }
  bool meets(std::int64_t step) const override { return is_last_of(period_, step); }
  void after_step(const Step& step) override {
    if (meets(step.number)) average();
  }
  void finish() override { average(); }
  void model(std::span<float> out) override { report_.consensus = mean_of_all(world_, weights_, out); }
  std::vector<Kept> state() override { return mean_.state(); }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return mean_.coded(); }
  Report report() const override { return mean_.report(report_); }

 private:
  void average() {
    Waiting waiting(report_);
    mean_(weights_);
  }

  const std::int64_t period_;  // H
  ModelMean mean_;
};

}  // namespace

StrategyKind local_sgd() {
  return {.name = "local-sgd",
          .summary = "every worker on its own; models averaged every H steps",
          .settings = {{"H", "8", "steps between averages", whole_number(1, kMany)}},
          .compresses = StrategyKind::Compresses::models,
          .proven = StrategyKind::Proven::speedup,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<LocalSgd>(context, values.integer("H"));
          },
          .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
            if (!is_last_of(values.integer("H"), at.step)) return {};
            return {mean(Exchange::Of::model, Moment::after_step, Moment::after_step)};
          },
          .exact = {{"H=1", StrategyKind::Exact::Where::plain_sgd}}};
}

}  // namespace trireme::sync
