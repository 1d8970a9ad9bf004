// Synchronous data parallelism: w ← w − η·(1/N) Σ_i g_i(w). The gradients are exchanged bucket by bucket while backward
// runs (grad/, by the hook of all_reduce.h), so that nothing is left to do here. 2(N−1)/N of a model sent per step.
#include "trireme/sync/flat.h"
#include "trireme/sync/kinds.h"
#include "trireme/sync/one_learner.h"

namespace trireme::sync {
namespace {

class Allreduce : public OneLearner {
 public:
  explicit Allreduce(const Surroundings& around) : OneLearner(around.world), codes_(around.codes()) {}
  bool in_backward() const override { return true; }
  Codes codes() const override { return codes_; }
  bool shares_gradient() const override { return true; }
  bool meets(std::int64_t) const override { return true; }
  bool apart() const override { return false; }
  void finish() override {}
  void model(std::span<float> out) override { copy(weights_, out); }

 private:
  const Codes codes_;
};

}  // namespace

Kind allreduce() {
  return {.name = "allreduce",
          .summary = "synchronous mean of gradients, each step",
          .settings = {},
          .compresses = Kind::Compresses::gradients,
          .make = [](const Values&, const Surroundings& around) -> std::unique_ptr<Strategy> {
            return std::make_unique<Allreduce>(around);
          },
          .course = [](const Values&, const CourseAt&) -> Course {
            return {{.what = Exchange::What::buckets,
                     .of = Exchange::Of::gradient,
                     .start = Moment::in_backward,
                     .wait = Moment::after_backward}};
          }};
}

}  // namespace trireme::sync
