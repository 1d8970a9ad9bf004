// One-shot averaging (Zinkevich et al., 2010): workers never speak until the end, w ← (1/N) Σ_i w_i. All start from the
// same weights. The mean of models that have parted is worth less than each of them. Networks part into different
// valleys early if at all (Frankle et al., 2020, on linear mode connectivity): asked for by `together`, workers take
// the same batches in that share of all steps, the first, which needs no words, and the mean still lies in the valley.
#include <cmath>

#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

class AverageAtEnd : public OneLearner {
 public:
  AverageAtEnd(const Context& context, std::int64_t together)
      : OneLearner(context.world), together_(together), mean_(context) {}

  void start() override { mean_.start(weights_); }
  std::int64_t together() const override { return together_; }
  // Who never speaks must not stray: with more momentum models end in valleys whose mean lies on a ridge. What is
  // learned is that of one worker's small batches, which bear a somewhat higher rate.
  Pace pace(double momentum) const override { return momentum > 0.8 ? Pace{0.8, 1.3} : Pace{.momentum = momentum}; }
  void finish() override {
    Waiting waiting(report_);
    mean_(weights_);
  }
  void model(std::span<float> out) override { report_.consensus = mean_of_all(world_, weights_, out); }
  std::vector<Kept> state() override { return mean_.state(); }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return mean_.coded(); }
  Report report() const override { return mean_.report(report_); }

 private:
  const std::int64_t together_;
  ModelMean mean_;
};

}  // namespace

StrategyKind average_at_end() {
  return {.name = "average-at-end",
          .summary = "every worker on its own; models averaged once, at the end",
          .settings = {{"together", "0", "share of all steps, the first, in which workers take the same batches",
                        number(0, 1)}},
          .compresses = StrategyKind::Compresses::models,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            const double share = values.number("together");
            return std::make_unique<AverageAtEnd>(context, context.share_of_steps(share, "average-at-end:together"));
          },
          .exchange_plan = [](const Values&, const ExchangePlanAt&) -> ExchangePlan { return {}; }};
}

}  // namespace trireme::sync
