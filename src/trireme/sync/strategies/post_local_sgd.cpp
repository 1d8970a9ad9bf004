// Post-local SGD (Lin et al., 2020): the mean of gradients while weights move fast, local SGD afterwards:
//   step < W:  w ← w − η·(1/N) Σ_i g_i(w);   then  w_i ← w_i − η g_i(w_i), every H steps  w_i ← (1/N) Σ_j w_j
// W is `warmup` of all steps. 2(N−1)/N of a model sent per step at first, then every H steps.
#include <cmath>
#include <iterator>

#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

// What is averaged after which step.
struct Phases {
  std::int64_t period;  // H
  std::int64_t warmup;  // W
  bool gradients(std::int64_t step) const { return step < warmup; }
  bool models(std::int64_t step) const { return step >= warmup && is_last_of(period, step); }
};

class PostLocalSgd : public OneLearner {
 public:
  PostLocalSgd(const Context& context, const Phases& phases)
      : OneLearner(context.world),
        phases_(phases),
        gradients_(make_compressed_mean(context, Op::avg)),
        models_(context) {}

  void start() override { models_.start(weights_); }
  bool meets(std::int64_t step) const override { return phases_.gradients(step) || phases_.models(step); }
  bool averages(std::int64_t step) const override { return phases_.gradients(step); }
  void after_backward(const Step& step) override {
    if (!phases_.gradients(step.number)) return;
    Waiting waiting(report_);
    gradients_ ? (*gradients_)(gradient_) : world_.all_reduce(gradient_, Op::avg);
  }
  // Until the warm-up ends all models are equal.
  void after_step(const Step& step) override {
    if (step.number + 1 == phases_.warmup) models_.start(weights_);
    apart_ = apart_ || !phases_.gradients(step.number);
    if (phases_.models(step.number)) average();
  }
  void finish() override {
    if (apart_) average();
  }
  void model(std::span<float> out) override { report_.consensus = mean_of_all(world_, weights_, out); }
  std::vector<Kept> state() override { return models_.state(); }
  std::vector<double> numbers() const override { return {apart_ ? 1.0 : 0.0}; }
  void set_numbers(std::span<const double> numbers) override { apart_ = only_of(numbers) != 0; }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override {
    auto all = models_.coded();
    std::ranges::copy(named("gradients", gradients_.get()), std::back_inserter(all));
    return all;
  }
  Report report() const override {
    auto report = models_.report(report_);
    add_to(report, gradients_.get());
    return report;
  }

 private:
  void average() {
    Waiting waiting(report_);
    models_(weights_);
  }

  const Phases phases_;
  std::unique_ptr<CompressedMean> gradients_;  // where they travel as codes
  ModelMean models_;
  bool apart_ = false;  // past the warm-up
};

}  // namespace

StrategyKind post_local_sgd() {
  return {.name = "post-local-sgd",
          .summary = "mean of gradients during a warm-up, then local SGD",
          .settings = {{"H", "8", "steps between averages after the warm-up", whole_number(1, kMany)},
                       {"warmup", "0.5", "share of all steps that average gradients", number(0, 1)}},
          .traits = {.uses_gradient = true},
          .compresses = StrategyKind::Compresses::models,
          .proven = StrategyKind::Proven::speedup,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            const auto warmup = context.share_of_steps(values.number("warmup"), "post-local-sgd:warmup");
            return std::make_unique<PostLocalSgd>(context, Phases{values.integer("H"), warmup});
          },
          .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
            const auto warmup = std::llround(values.number("warmup") * static_cast<double>(at.total_steps));
            const Phases phases{values.integer("H"), warmup};
            ExchangePlan exchange_plan;
            if (phases.gradients(at.step)) {
              exchange_plan.push_back(mean(Exchange::Of::gradient, Moment::after_backward, Moment::after_backward));
            }
            if (phases.models(at.step)) {
              exchange_plan.push_back(mean(Exchange::Of::model, Moment::after_step, Moment::after_step));
            }
            exchange_plan.push_back(lay_out());
            return exchange_plan;
          },
          .exact = {{"warmup=1", StrategyKind::Exact::Where::equal_batches}}};
}

}  // namespace trireme::sync
