// Workers at their own pace, in a co-simulation: reads and updates in the order of the simulator's time.
#include <map>

#include "trireme/cluster/sim/learning/learning_trial.h"
#include "trireme/sync/pace_with_codes.h"

namespace trireme::cluster {
namespace {

using sync::Exchange;

// What a worker sends to its servers, there and decoded again.
class Sender {
 public:
  Sender(const LearningTrial& trial, int worker) {
    const compress::Context context{.seed = trial.job.seed,
                                    .rank = worker,
                                    .workers = trial.workers,
                                    .steps_per_epoch = trial.options.steps,
                                    .momentum = trial.rules.takes_momentum() ? trial.options.momentum : 0};
    if (trial.rules.none()) return;
    int number = 0;
    for (const auto& one : SmallModel::tensors()) {
      const compress::Tensor tensor{one.name, one.count, one.rows, number++};
      codecs_.push_back({trial.rules.of(tensor).make(tensor, context), one.count});
    }
  }
  void pass(std::span<float> gradient) {
    std::size_t at = 0;
    for (auto& [codec, count] : codecs_) {
      const auto part = gradient.subspan(at, count);
      message_.resize(codec->most_bytes(count) + compress::Codec::kHeader);
      const auto bytes = codec->encode(0, part, message_.data(), nullptr);
      codec->decode({message_.data(), bytes}, part);
      at += count;
    }
  }

 private:
  std::vector<std::pair<std::unique_ptr<compress::Codec>, std::size_t>> codecs_;
  std::vector<std::byte> message_;
};

class Replay {
 public:
  Replay(const LearningTrial& trial, const Simulated& simulated, const Exchange& exchange)
      : school_(trial), simulated_(simulated), exchange_(exchange), shown_(trial.model.start()) {
    const bool late = exchange.what == Exchange::What::push_pull && (exchange.clock.async || exchange.clock.s > 0);
    const double momentum = trial.options.momentum;
    const auto own = late ? sync::late_pace(momentum) : sync::Pace{.momentum = momentum};
    pace_ = pace_with_codes(*trial.job.strategy.kind, trial.rules, own, momentum);
    common_ = Stepper(pace_.momentum);
    for (int worker = 0; worker < trial.workers; ++worker) {
      own_.push_back(shown_);
      read_.push_back(shown_);
      optimizers_.emplace_back(pace_.momentum);
      senders_.emplace_back(trial, worker);
      clocks_.push_back(0);
    }
  }

  LossCurve run() {
    LossCurve curve;
    std::int64_t applied = 0;
    for (const auto& access : simulated_.accesses) {
      const auto worker = static_cast<std::size_t>(access.worker);
      if (access.what == Access::What::read) {
        read_[worker] = pairs() ? own_[worker] : shown_;
      } else if (access.what == Access::What::average) {
        average(own_[worker], own_[static_cast<std::size_t>(access.peer)]);
      } else {
        apply(access);
        if (++applied % (kLook * school_.workers) != 0) continue;
        const double loss = school_.model.loss(pairs() ? mean() : shown_);
        if (!std::isfinite(loss)) break;
        curve.add(static_cast<double>(applied) * school_.options.batch, loss);
        if (curve.reached(school_.target)) break;
      }
    }
    return curve;
  }

 private:
  bool pairs() const { return exchange_.what == Exchange::What::ask; }
  double lr() const { return school_.options.lr * pace_.rate; }

  static void average(Weights& a, Weights& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] = 0.5f * (a[i] + b[i]);
  }

  void apply(const Access& access) {
    const auto worker = static_cast<std::size_t>(access.worker);
    Weights gradient(SmallModel::kCount);
    school_.model.gradient(read_[worker], access.worker, access.step, school_.options.batch, gradient);
    sync::shorten(gradient, pace_.clip);
    if (pairs()) return optimizers_[worker].step(own_[worker], gradient, lr());
    for (float& g : gradient) g /= static_cast<float>(school_.workers);
    if (exchange_.what == Exchange::What::shared) return optimizers_[worker].step(shown_, gradient, lr());
    senders_[worker].pass(gradient);
    push(worker, std::move(gradient));
  }

  // As the servers' clocks have it: a clock's pushes become one update once they are visible.
  void push(std::size_t worker, Weights gradient) {
    const auto clock = clocks_[worker]++;
    auto& sum = waiting_[clock];
    if (sum.empty()) sum.assign(gradient.size(), 0.0f);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    const auto minimum = *std::ranges::min_element(clocks_);
    while (!waiting_.empty() && exchange_.clock.visible(waiting_.begin()->first, minimum)) {
      common_.step(shown_, waiting_.begin()->second, lr());
      waiting_.erase(waiting_.begin());
    }
  }

  Weights mean() const {
    Weights all(SmallModel::kCount, 0.0f);
    for (const auto& one : own_) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i] / static_cast<float>(own_.size());
    }
    return all;
  }

  const LearningTrial& school_;
  const Simulated& simulated_;
  const Exchange exchange_;
  sync::Pace pace_;
  Weights shown_;  // the servers', or those that all share
  std::vector<Weights> own_, read_;
  Stepper common_{0};
  std::vector<Stepper> optimizers_;
  std::vector<Sender> senders_;
  std::vector<std::uint64_t> clocks_;
  std::map<std::uint64_t, Weights> waiting_;
};

}  // namespace

LossCurve learn_in_order(const LearningTrial& trial, const Simulated& simulated, const Exchange& exchange) {
  return Replay(trial, simulated, exchange).run();
}

}  // namespace trireme::cluster
