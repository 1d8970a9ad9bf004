// Post-local SGD (Lin et al., 2020): the mean of gradients while weights move fast, local SGD afterwards:
//   step < W:  w ← w − η·(1/N) Σ_i g_i(w);   then  w_i ← w_i − η g_i(w_i), every H steps  w_i ← (1/N) Σ_j w_j
// W is `warmup` of all steps. 2(N−1)/N of a model sent per step at first, then every H steps.
#include <cmath>

#include "trireme/sync/kinds.h"
#include "trireme/sync/mean.h"
#include "trireme/sync/model_mean.h"
#include "trireme/sync/one_learner.h"

namespace trireme::sync {
namespace {

class PostLocalSgd : public OneLearner {
 public:
  PostLocalSgd(const Surroundings& around, std::int64_t period, std::int64_t warmup)
      : OneLearner(around.world),
        period_(period),
        warmup_(warmup),
        gradients_(make_compressed_mean(around, Op::avg)),
        models_(around) {}

  void start() override { models_.start(weights_); }
  bool takes_gradient() const override { return warmup_ > 0; }
  bool meets(std::int64_t step) const override { return step < warmup_ || (step + 1) % period_ == 0; }
  void after_backward(const Step& step) override {
    if (step.number >= warmup_) return;
    Waiting waiting(report_);
    gradients_ ? (*gradients_)(gradient_) : world_.all_reduce(gradient_, Op::avg);
  }
  // Until the warm-up ends all models are equal.
  void after_step(const Step& step) override {
    if (step.number + 1 == warmup_) models_.start(weights_);
    apart_ = apart_ || step.number >= warmup_;
    if (apart_ && meets(step.number)) average();
  }
  void finish() override {
    if (apart_) average();
  }
  void model(std::span<float> out) override { report_.consensus = mean_of_all(world_, weights_, out); }
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

  const std::int64_t period_;                  // H
  const std::int64_t warmup_;                  // W
  std::unique_ptr<CompressedMean> gradients_;  // where they travel as codes
  ModelMean models_;
  bool apart_ = false;  // past the warm-up
};

}  // namespace

Kind post_local_sgd() {
  return {.name = "post-local-sgd",
          .summary = "mean of gradients during a warm-up, then local SGD",
          .settings = {{"H", "8", "steps between averages after the warm-up", whole_number(1, kMany)},
                       {"warmup", "0.5", "share of all steps that average gradients", number(0, 1)}},
          .compresses = Kind::Compresses::models,
          .make = [](const Values& values, const Surroundings& around) -> std::unique_ptr<Strategy> {
            const auto warmup = std::llround(values.number("warmup") * static_cast<double>(around.total_steps));
            return std::make_unique<PostLocalSgd>(around, values.integer("H"), warmup);
          }};
}

}  // namespace trireme::sync
