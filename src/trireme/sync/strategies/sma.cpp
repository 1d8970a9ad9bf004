// Synchronous model averaging (CROSSBOW; Koliousis et al., 2019): many learners with small batches explore on their
// own, several per worker, each corrected towards a central average model z that moves with momentum. Every τ steps,
// from the same w_j and z,
//   c_j = α (w_j − z)        w_j ← w_j − c_j − η g_j(w_j)        z ← z + Σ_j c_j + μ (z − z_prev)
// over the k learners of all workers. The paper has α = 1/k; so short of a spring learners stray, and 2/k, at most 1/2,
// is the default (docs/strategies.md). The corrections need only what is known before forward: a
// worker's are summed, and the sum travels while the learners compute. z is kept by every worker, so 2(N−1)/N of a
// model is sent every τ steps, however many learners there are. z is the model.
#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/sync/exchange/under_way.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

class Sma : public Strategy {
 public:
  struct Settings {
    int learners;  // 0: auto
    double alpha;  // negative: auto
    double momentum;
    std::int64_t period;
  };
  Sma(const Context& context, const Settings& settings)
      : world_(context.world),
        settings_(settings),
        mu_(static_cast<float>(settings.momentum)),
        codes_(make_compressed_mean(context, Op::sum)) {}

  bool meets(std::int64_t step) const override { return is_last_of(settings_.period, step); }

  // Again whenever a worker's learners have changed: those that are new, by their memory, start from z.
  void begin(std::span<const Replica> replicas) override {
    TRIREME_CHECK(!replicas.empty());
    if (z_.size() == 0) {
      z_ = FlatVector(world_, replicas[0].weights);
      velocity_ = FlatVector(world_, z_.size());
      sum_ = FlatVector(world_, z_.size());
    } else {
      for (const Replica& replica : replicas) {
        if (!knows(replica)) copy(z_.span(), replica.weights);
      }
    }
    replicas_.assign(replicas.begin(), replicas.end());
    std::vector<std::int64_t> all{static_cast<std::int64_t>(replicas.size())};
    world_.all_reduce(all, Op::sum);
    all_learners_ = all[0];
    alpha_ =
        static_cast<float>(settings_.alpha < 0 ? std::min(0.5, 2.0 / static_cast<double>(all[0])) : settings_.alpha);
  }

  void before_forward(const Step& step) override {
    if (!meets(step.number)) return;
    auto sum = sum_.span();
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (const Replica& replica : replicas_) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += alpha_ * (replica.weights[i] - z_[i]);
    }
    if (codes_) {
      coded_ = codes_->start(sum);
    } else {
      exchange_.add(world_.async().all_reduce(sum, Op::sum));
    }
  }

  void abandon(const Step& step) override {
    if (meets(step.number)) await_sum();
  }

  void after_backward(const Step& step) override {
    if (!meets(step.number)) return;
    for (const Replica& replica : replicas_) {
      for (std::size_t i = 0; i < z_.size(); ++i) replica.weights[i] -= alpha_ * (replica.weights[i] - z_[i]);
    }
    await_sum();
    for (std::size_t i = 0; i < z_.size(); ++i) {
      velocity_[i] = sum_[i] + mu_ * velocity_[i];
      z_[i] += velocity_[i];
    }
  }

  void finish() override {
    for (const Replica& replica : replicas_) copy(z_.span(), replica.weights);
  }

  void model(std::span<float> out) override {
    copy(z_.span(), out);
    std::vector<double> square(1);
    for (const Replica& replica : replicas_) {
      for (std::size_t i = 0; i < z_.size(); ++i) square[0] += std::pow(double(replica.weights[i]) - double(z_[i]), 2);
    }
    world_.all_reduce(square, Op::sum);
    report_.consensus = std::sqrt(square[0] / static_cast<double>(all_learners_));
  }
  std::vector<Kept> state() override { return {{"centre", z_.span()}, {"velocity", velocity_.span()}}; }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return named("corrections", codes_.get()); }
  Report report() const override {
    auto report = report_;
    add_to(report, codes_.get());
    return report;
  }

 private:
  void await_sum() {
    Waiting waiting(report_);
    codes_ ? coded_->wait() : exchange_.wait();
  }
  bool knows(const Replica& replica) const {
    return std::any_of(replicas_.begin(), replicas_.end(),
                       [&](const Replica& old) { return old.weights.data() == replica.weights.data(); });
  }

  Communicator& world_;
  const Settings settings_;
  const float mu_;
  float alpha_ = 0;
  std::vector<Replica> replicas_;
  std::int64_t all_learners_ = 0;  // k
  FlatVector z_;
  FlatVector velocity_;  // z − z_prev
  FlatVector sum_;       // Σ c_j
  UnderWay exchange_{world_};
  std::unique_ptr<CompressedMean> codes_;  // where Σ c_j travels as codes
  std::unique_ptr<Pending> coded_;
  Report report_;
};

int learners_of(const Values& values) {
  return values.is("learners", "auto") ? 0 : static_cast<int>(values.integer("learners"));
}

}  // namespace

StrategyKind sma() {
  return {.name = "sma",
          .summary = "learners corrected towards a central model with momentum (CROSSBOW)",
          .settings = {{"learners", "auto", "learners per worker; auto: found by throughput",
                        whole_number(1, 64, {"auto"})},
                       {"alpha", "auto", "strength of a correction; auto: 2 / learners of all workers, at most 0.5",
                        number(0, 1, {"auto"})},
                       {"momentum", "0.9", "momentum of the central model", number(0, 0.9999)},
                       {"tau", "1", "steps between corrections", whole_number(1, kMany)}},
          .compresses = StrategyKind::Compresses::models,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<Sma>(
                context, Sma::Settings{.learners = learners_of(values),
                                       .alpha = values.is("alpha", "auto") ? -1 : values.number("alpha"),
                                       .momentum = values.number("momentum"),
                                       .period = values.integer("tau")});
          },
          .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
            if (!is_last_of(values.integer("tau"), at.step)) return {};
            const double learners = std::max(1, learners_of(values));
            return {pass(Moment::before_forward, 1 + 4 * learners),
                    mean(Exchange::Of::model, Moment::before_forward, Moment::after_backward),
                    pass(Moment::after_backward, 3 * learners), late(pass(Moment::after_backward, 5))};
          },
          .learners = learners_of};
}

}  // namespace trireme::sync
