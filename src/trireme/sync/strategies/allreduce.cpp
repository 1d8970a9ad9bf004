// Synchronous data parallelism: w ← w − η·(1/N) Σ_i g_i(w). The gradients are exchanged bucket by bucket while backward
// runs, as they are or as codes; weights stay where the model has them. 2(N−1)/N of a model sent per step.
#include "trireme/sync/exchange/bucket_all_reduce.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

class Allreduce : public OneLearner {
 public:
  explicit Allreduce(const Context& context)
      : OneLearner(context.world),
        plain_(context.world, context.exchanged),
        codes_(make_compressed_mean(context, context.exchanged, context.not_finite)) {}

  BucketExchange* exchange() override { return codes_ ? static_cast<BucketExchange*>(codes_.get()) : &plain_; }
  bool meets(std::int64_t) const override { return true; }
  void finish() override {}
  void model(std::span<float> out) override { copy(weights_, out); }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return named("gradients", codes_.get()); }
  Report report() const override {
    Report report;
    add_to(report, codes_.get());
    return report;
  }

 private:
  BucketAllReduce plain_;
  std::unique_ptr<CompressedMean> codes_;
};

}  // namespace

StrategyKind allreduce() {
  return {.name = "allreduce",
          .summary = "synchronous mean of gradients, each step",
          .settings = {},
          .traits = {.moves = Traits::Moves::gradients,
                     .in_backward = true,
                     .uses_weights = false,
                     .shares_gradient = true,
                     .apart = false},
          .compresses = StrategyKind::Compresses::gradients,
          .proven = StrategyKind::Proven::speedup,
          .make = [](const Values&, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<Allreduce>(context);
          },
          .exchange_plan = [](const Values&, const ExchangePlanAt&) -> ExchangePlan {
            return {{.what = Exchange::What::buckets,
                     .of = Exchange::Of::gradient,
                     .start = Moment::in_backward,
                     .wait = Moment::after_backward}};
          },
          .exact = {{""}}};
}

}  // namespace trireme::sync
