// One-shot averaging (Zinkevich et al., 2010): workers never speak until the end, w ← (1/N) Σ_i w_i. From different
// starts that would be the mean of unrelated models; all start from the same here.
#include "trireme/sync/kinds.h"
#include "trireme/sync/mean.h"
#include "trireme/sync/model_mean.h"
#include "trireme/sync/one_learner.h"

namespace trireme::sync {
namespace {

class AverageAtEnd : public OneLearner {
 public:
  explicit AverageAtEnd(const Surroundings& around) : OneLearner(around.world), mean_(around) {}

  void start() override { mean_.start(weights_); }
  // Who never speaks must not stray: with much momentum models end in valleys whose mean lies on a ridge.
  Pace pace(double momentum) const override { return {std::min(momentum, 0.5), 1}; }
  void finish() override {
    Waiting waiting(report_);
    mean_(weights_);
  }
  void model(std::span<float> out) override { report_.consensus = mean_of_all(world_, weights_, out); }
  std::vector<Kept> state() override { return mean_.state(); }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return mean_.coded(); }
  Report report() const override { return mean_.report(report_); }

 private:
  ModelMean mean_;
};

}  // namespace

Kind average_at_end() {
  return {.name = "average-at-end",
          .summary = "every worker on its own; models averaged once, at the end",
          .settings = {},
          .compresses = Kind::Compresses::models,
          .make = [](const Values&, const Surroundings& around) -> std::unique_ptr<Strategy> {
            return std::make_unique<AverageAtEnd>(around);
          },
          .course = [](const Values&, const CourseAt&) -> Course { return {}; }};
}

}  // namespace trireme::sync
