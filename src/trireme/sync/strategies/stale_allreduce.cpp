// Decentralized stale-synchronous: the mean of gradients, applied s steps later, so that its exchange has s steps of
// compute to hide behind:
//   g_k = (1/N) Σ_i g_i(ŵ_k)        w_{k+1} = w_k − η·g_{k−s}        ŵ_k = w_k + a·s·(w_k − w_{k−1})
// What is applied late is measured where the weights will be about then: ŵ looks ahead along the last step (as weight
// prediction in pipelines does: Chen et al., 2018). And no gradient may be longer than `clip`: late and long ones
// swing. The gradient of step k travels in slot k mod (s+1). The first s steps leave the weights where they are; the
// last s gradients are delivered by drain(). s = 0 is allreduce. 2(N−1)/N of a model sent per step; two models of
// memory more.
#include <fmt/format.h>

#include <deque>

#include "trireme/sync/exchange/under_way.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/model_mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

class StaleAllreduce : public OneLearner {
 public:
  StaleAllreduce(const Context& context, std::int64_t staleness, double ahead, double clip)
      : OneLearner(context.world),
        staleness_(staleness),
        ahead_(static_cast<float>(ahead)),
        clip_(clip),
        codes_(make_compressed_mean(context, Op::sum)) {}

  bool averages(std::int64_t) const override { return true; }
  double most_norm() const override { return staleness_ > 0 ? clip_ : 0; }
  bool skips_step() const override { return skips_; }
  bool meets(std::int64_t) const override { return true; }

  void start() override {
    for (std::int64_t i = 0; i <= staleness_; ++i) slots_.emplace_back(world_, gradient_.size());
    if (staleness_ == 0) return;
    here_ = FlatVector(world_, weights_);
    before_ = FlatVector(world_, weights_);
  }

  void before_forward(const Step&) override {
    if (staleness_ == 0) return;
    const float far = ahead_ * static_cast<float>(staleness_);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      here_[i] = weights_[i];
      weights_[i] += far * (weights_[i] - before_[i]);
    }
  }

  void abandon(const Step&) override {
    if (staleness_ > 0) copy(here_.span(), weights_);
  }

  void after_backward(const Step& step) override {
    abandon(step);  // steps are from where the weights are, not from ahead
    if (staleness_ > 0) copy(here_.span(), before_.span());
    auto& slot = slot_of(sent_++);
    slot = gradient_;
    if (codes_) {
      coded_.push_back(codes_->start(slot.span()));
    } else {
      under_way_.add(world_.async().all_reduce(slot.span(), Op::sum));
    }
    skips_ = sent_ - applied_ <= staleness_;
    if (!skips_) deliver();
  }

  bool drain() override {
    skips_ = false;
    if (applied_ == sent_) return false;
    deliver();
    return true;
  }

  void finish() override {}

  // What is under way arrives; it is applied when its turn comes.
  void settle() override {
    while (arrived_ < sent_) await_next();
  }
  std::vector<Kept> state() override {
    settle();
    std::vector<Kept> all;
    if (staleness_ > 0) all.push_back({"before", before_.span()});
    for (std::size_t k = 0; k < slots_.size(); ++k) all.push_back({fmt::format("slot{}", k), slots_[k].span()});
    return all;
  }
  std::vector<double> numbers() const override { return {static_cast<double>(sent_), static_cast<double>(applied_)}; }
  void set_numbers(std::span<const double> numbers) override {
    constexpr double kMost = 0x1p53;
    const bool fits = numbers.size() == 2 && numbers[1] >= 0 && numbers[0] >= numbers[1] && numbers[0] < kMost &&
                      numbers[0] - numbers[1] <= static_cast<double>(staleness_);
    if (!fits) throw DataError("stale-allreduce: another number of gradients was under way than s allows");
    sent_ = arrived_ = static_cast<std::int64_t>(numbers[0]);
    applied_ = static_cast<std::int64_t>(numbers[1]);
  }
  std::vector<std::pair<std::string, CompressedMean*>> coded() override { return named("gradients", codes_.get()); }

  Report report() const override {
    auto report = report_;
    add_to(report, codes_.get());
    return report;
  }
  void model(std::span<float> out) override { copy(weights_, out); }

 private:
  FlatVector& slot_of(std::int64_t step) { return slots_[static_cast<std::size_t>(step % (staleness_ + 1))]; }

  // The oldest that is under way.
  void await_next() {
    Waiting waiting(report_);
    if (codes_) {
      coded_.front()->wait();
      coded_.pop_front();
    } else {
      under_way_.wait_first(1);
    }
    ++arrived_;
  }

  // Its weights had seen all but the last s of the updates before it.
  void deliver() {
    if (arrived_ == applied_) await_next();
    copy(slot_of(applied_).span(), gradient_);
    ++report_.stale[std::min(applied_, staleness_)];
    ++applied_;
  }

  const std::int64_t staleness_;  // s
  const float ahead_;             // a
  const double clip_;             // 0: any
  FlatVector here_, before_;      // w_k, while the weights are ŵ_k; w_{k−1}
  std::vector<FlatVector> slots_;
  UnderWay under_way_{world_};  // those of steps arrived_ … sent_ − 1
  std::unique_ptr<CompressedMean> codes_;
  std::deque<std::unique_ptr<Pending>> coded_;  // the same, where they travel as codes
  // Steps whose gradients were sent, whose means are in their slots, and were put in place. Invariant: applied_ ≤
  // arrived_ ≤ sent_ ≤ applied_ + s between steps.
  std::int64_t sent_ = 0, arrived_ = 0, applied_ = 0;
  bool skips_ = false;
};

}  // namespace

StrategyKind stale_allreduce() {
  return {
      .name = "stale-allreduce",
      .summary = "mean of gradients, applied s steps later",
      .settings = {{"s", "1", "steps a mean may travel", whole_number(0, 64)},
                   {"ahead", "0.7", "how far ahead gradients are measured, in steps per step of delay", number(0, 4)},
                   {"clip", "1", "most norm of a late mean (0: any)", number(0, 1e30)}},
      .traits = {.moves = Traits::Moves::gradients, .uses_gradient = true, .shares_gradient = true, .apart = false},
      .compresses = StrategyKind::Compresses::gradients,
      .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
        return std::make_unique<StaleAllreduce>(context, values.integer("s"), values.number("ahead"),
                                                values.number("clip"));
      },
      .exchange_plan = [](const Values& values, const ExchangePlanAt&) -> ExchangePlan {
        const auto s = static_cast<int>(values.integer("s"));
        // Gradients are copied to their slot; with s > 0 weights are put back, too.
        ExchangePlan exchange_plan{lay_out(), copies(Moment::after_backward, s > 0 ? 3 : 1),
                                   mean(Exchange::Of::gradient, Moment::after_backward, Moment::after_backward, s),
                                   late(copies(Moment::after_backward, 1))};
        if (s > 0) {
          exchange_plan.push_back(late(pass(Moment::after_backward, 1)));
          exchange_plan.push_back(pass(Moment::before_forward, 4));
        }
        return exchange_plan;
      },
      .exact = {{"s=0"}}};
}

}  // namespace trireme::sync
