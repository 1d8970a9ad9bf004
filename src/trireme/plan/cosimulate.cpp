#include "trireme/plan/cosimulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "trireme/compress/rules.h"
#include "trireme/plan/small_model.h"
#include "trireme/sync/compressed_mean.h"

namespace trireme::plan {
namespace {

using Weights = std::vector<float>;
using sync::Exchange;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The loss is looked at every so many steps of a worker.
constexpr std::int64_t kLook = 5;

// As train/optimizers has it: v ← μ v + g, w ← w − η v.
struct Sgd {
  double momentum = 0;
  Weights velocity = Weights(SmallModel::kCount, 0.0f);
  void step(std::span<float> weights, std::span<const float> gradient, double lr) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      velocity[i] = static_cast<float>(momentum) * velocity[i] + gradient[i];
      weights[i] -= static_cast<float>(lr) * velocity[i];
    }
  }
};

// What momentum and rate a job trains with, and how long gradients may be: train/strategy.cpp.
struct Manner {
  double momentum = 0, rate = 1, clip = 0;
};
Manner manner_of(const sync::Kind& kind, const compress::Rules& rules, const sync::Strategy::Pace& pace,
                 double momentum) {
  if (rules.takes_momentum()) return {0, 1, 0};
  const bool lags = rules.lags() && kind.compresses == sync::Kind::Compresses::gradients;
  if (pace.momentum > 0 && lags) {
    const auto slower = sync::without_momentum(momentum, 6);
    return {slower.momentum, slower.rate, 2};
  }
  return {pace.momentum, pace.rate, 0};
}

void shorten(std::span<float> gradient, double most) {
  double square = 0;
  for (float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
  if (most <= 0 || !(square > most * most)) return;
  const auto factor = static_cast<float>(most / std::sqrt(square));
  for (float& g : gradient) g *= factor;
}

// A loss as it fell, looked at after so many samples of all workers. Smoothed, as single looks are noisy.
class LossCurve {
 public:
  void add(double samples, double loss) {
    smooth_ = points_.empty() ? loss : 0.7 * smooth_ + 0.3 * loss;
    points_.emplace_back(samples, smooth_);
    least_ = std::min(least_, smooth_);
  }
  double at(double samples) const {
    for (const auto& [seen, loss] : points_) {
      if (seen >= samples) return loss;
    }
    return points_.empty() ? kInfinite : points_.back().second;
  }
  double samples_to(double target) const {
    double before_samples = 0, before = kInfinite;
    for (const auto& [samples, loss] : points_) {
      if (loss <= target) {
        if (!std::isfinite(before)) return samples;
        return before_samples + (samples - before_samples) * (before - target) / std::max(1e-12, before - loss);
      }
      before_samples = samples;
      before = loss;
    }
    return kInfinite;
  }
  double least() const { return least_; }
  bool reached(double target) const { return least_ <= target; }

 private:
  std::vector<std::pair<double, double>> points_;
  double smooth_ = 0, least_ = kInfinite;
};

struct School {
  const Job& job;
  const Lesson& lesson;
  const compress::Rules rules;
  const SmallModel model;
  const int workers;
  const double target;  // give up the lesson once it is reached
  std::int64_t most_steps;
  double samples_of(std::int64_t steps) const { return static_cast<double>(steps) * workers * lesson.batch; }
};

// ---- Plain all-reduce: one learner with everyone's mean gradient ----

LossCurve learn_plainly(const School& school) {
  LossCurve curve;
  auto weights = school.model.start();
  Sgd optimizer{school.lesson.momentum};
  Weights one(SmallModel::kCount), sum(SmallModel::kCount);
  for (std::int64_t k = 0; k < school.most_steps; ++k) {
    std::ranges::fill(sum, 0.0f);
    for (int worker = 0; worker < school.workers; ++worker) {
      school.model.gradient(weights, worker, k, school.lesson.batch, one);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i] / static_cast<float>(school.workers);
    }
    optimizer.step(weights, sum, school.lesson.lr);
    if ((k + 1) % kLook == 0) curve.add(school.samples_of(k + 1), school.model.loss(weights));
  }
  return curve;
}

// ---- Those that meet: the real strategies on threads ----

class Pupil {
 public:
  Pupil(const School& school, const sync::Choice& choice, Communicator& world)
      : school_(school),
        world_(world),
        strategy_(choice.make({.world = world,
                               .steps_per_epoch = school.lesson.steps,
                               .total_steps = school.lesson.steps,
                               .seed = school.job.seed,
                               .tensors = SmallModel::tensors(),
                               .compress = school.rules,
                               .momentum = school.rules.takes_momentum() ? school.lesson.momentum : 0})),
        manner_(
            manner_of(*choice.kind, school.rules, strategy_->pace(school.lesson.momentum), school.lesson.momentum)) {
    if (strategy_->in_backward() && !school.rules.none()) {
      std::vector<compress::Tensor> tensors;
      for (const auto& one : SmallModel::tensors()) {
        tensors.push_back({one.name, one.count, one.rows, static_cast<int>(tensors.size())});
      }
      codes_ = std::make_unique<sync::CompressedMean>(world, tensors, strategy_->codes(), Op::sum);
    }
    const int learners = std::max(1, strategy_->learners());
    for (int k = 0; k < learners; ++k) {
      weights_.push_back(world.allocate<float>(SmallModel::kCount));
      gradients_.push_back(world.allocate<float>(SmallModel::kCount));
      std::ranges::copy(school.model.start(), weights_.back().get());
      replicas_.push_back(
          {of(weights_.back()), strategy_->takes_gradient() ? of(gradients_.back()) : std::span<float>()});
      optimizers_.push_back({manner_.momentum});
    }
  }

  void learn(LossCurve& curve) {
    if (!strategy_->in_backward()) strategy_->begin(replicas_);
    const auto learners = static_cast<std::int64_t>(replicas_.size());
    for (std::int64_t k = 0; k < school_.most_steps; ++k) {
      step(k);
      if ((k + 1) % kLook != 0) continue;
      if (look(curve, school_.samples_of((k + 1) * learners))) break;
    }
    while (strategy_->drain()) {  // what is under way comes to its end on every rank
    }
  }

 private:
  static std::span<float> of(const std::shared_ptr<float[]>& memory) { return {memory.get(), SmallModel::kCount}; }

  void step(std::int64_t k) {
    const sync::Step now{k, school_.lesson.lr * manner_.rate};
    const bool exchanges = strategy_->in_backward();
    if (!exchanges) strategy_->before_forward(now);
    for (std::size_t j = 0; j < replicas_.size(); ++j) {
      auto gradient = of(gradients_[j]);
      school_.model.gradient(of(weights_[j]), world_.rank() + static_cast<int>(j) * world_.size(), k,
                             school_.lesson.batch, gradient);
      if (!strategy_->shares_gradient()) continue;
      for (float& g : gradient) g /= static_cast<float>(world_.size());
    }
    auto gradient = of(gradients_[0]);
    if (exchanges) codes_ ? (*codes_)(gradient) : world_.all_reduce(gradient, Op::sum);
    for (auto& one : gradients_) shorten(of(one), manner_.clip);
    if (!exchanges) strategy_->after_backward(now);
    if (!strategy_->skips_step()) {
      for (std::size_t j = 0; j < replicas_.size(); ++j) {
        optimizers_[j].step(of(weights_[j]), of(gradients_[j]), now.lr);
      }
    }
    if (!exchanges) strategy_->after_step(now);
  }

  // The same answer on every rank.
  bool look(LossCurve& curve, double samples) {
    Weights shown(SmallModel::kCount);
    strategy_->in_backward() ? static_cast<void>(std::ranges::copy(of(weights_[0]), shown.begin()))
                             : strategy_->model(shown);
    std::vector<double> loss{world_.rank() == 0 ? school_.model.loss(shown) : 0.0};
    world_.broadcast(loss, 0);
    if (!std::isfinite(loss[0])) return true;
    curve.add(samples, loss[0]);
    return curve.reached(school_.target);
  }

  const School& school_;
  Communicator& world_;
  std::vector<std::shared_ptr<float[]>> weights_, gradients_;  // shared: as the communicator gives them
  std::unique_ptr<sync::Strategy> strategy_;
  const Manner manner_;
  std::unique_ptr<sync::CompressedMean> codes_;
  std::vector<sync::Replica> replicas_;
  std::vector<Sgd> optimizers_;
};

LossCurve learn_together(const School& school, const sync::Choice& choice) {
  std::vector<LossCurve> curves(static_cast<std::size_t>(school.workers));
  run_threads(school.workers, [&](Communicator& world) {
    Pupil(school, choice, world).learn(curves[static_cast<std::size_t>(world.rank())]);
  });
  return curves[0];
}

// ---- Those at their own pace: the simulator's order ----

// What a worker sends to its servers, there and decoded again.
class Sender {
 public:
  Sender(const School& school, int worker) {
    const compress::Surroundings around{.seed = school.job.seed,
                                        .rank = worker,
                                        .workers = school.workers,
                                        .steps_per_epoch = school.lesson.steps,
                                        .momentum = school.rules.takes_momentum() ? school.lesson.momentum : 0};
    if (school.rules.none()) return;
    int number = 0;
    for (const auto& one : SmallModel::tensors()) {
      const compress::Tensor tensor{one.name, one.count, one.rows, number++};
      codecs_.push_back({school.rules.of(tensor).make(tensor, around), one.count});
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
  Replay(const School& school, const Simulated& simulated, const Exchange& exchange)
      : school_(school), simulated_(simulated), exchange_(exchange), shown_(school.model.start()) {
    const bool late = exchange.what == Exchange::What::push_pull && (exchange.clock.async || exchange.clock.s > 0);
    const auto pace =
        late ? sync::without_momentum(school.lesson.momentum, 4) : sync::Strategy::Pace{school.lesson.momentum, 1};
    manner_ = manner_of(*school.job.strategy.kind, school.rules, pace, school.lesson.momentum);
    common_.momentum = manner_.momentum;
    for (int worker = 0; worker < school.workers; ++worker) {
      own_.push_back(shown_);
      read_.push_back(shown_);
      optimizers_.push_back({manner_.momentum});
      senders_.emplace_back(school, worker);
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
        curve.add(static_cast<double>(applied) * school_.lesson.batch, loss);
        if (curve.reached(school_.target)) break;
      }
    }
    return curve;
  }

 private:
  bool pairs() const { return exchange_.what == Exchange::What::ask; }
  double lr() const { return school_.lesson.lr * manner_.rate; }

  static void average(Weights& a, Weights& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] = 0.5f * (a[i] + b[i]);
  }

  void apply(const Access& access) {
    const auto worker = static_cast<std::size_t>(access.worker);
    Weights gradient(SmallModel::kCount);
    school_.model.gradient(read_[worker], access.worker, access.step, school_.lesson.batch, gradient);
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

  const School& school_;
  const Simulated& simulated_;
  const Exchange exchange_;
  Manner manner_;
  Weights shown_;  // the servers', or those that all share
  std::vector<Weights> own_, read_;
  Sgd common_;
  std::vector<Sgd> optimizers_;
  std::vector<Sender> senders_;
  std::vector<std::uint64_t> clocks_;
  std::map<std::uint64_t, Weights> waiting_;
};

double mean_of(const std::map<std::int64_t, std::int64_t>& stale) {
  double sum = 0, count = 0;
  for (const auto& [by, steps] : stale) {
    sum += static_cast<double>(by * steps);
    count += static_cast<double>(steps);
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

Learning cosimulate(const Cluster& cluster, const Job& job, const Lesson& lesson) {
  const int asked = job.workers > 0 ? job.workers : cluster.workers();
  const int workers = std::clamp(asked, 1, lesson.most_workers);
  auto school_of = [&](std::string_view codec, std::string_view rules, double target, double steps) {
    return School{job,     lesson, {codec.empty() ? "none" : codec, rules}, SmallModel(lesson.seed),
                  workers, target, static_cast<std::int64_t>(steps)};
  };
  const auto plain = school_of("none", "", -kInfinite, lesson.steps);
  const auto reference = learn_plainly(plain);
  Learning learning;
  learning.target = reference.at(plain.samples_of(lesson.steps * 2 / 3));
  learning.reference = reference.samples_to(learning.target);

  const auto school = school_of(job.compress, job.compress_rules, learning.target, lesson.patience * lesson.steps);
  const auto course = job.strategy.course({0, workers, 0, 1, 1, job.seed});
  const auto own_pace = std::ranges::find_if(course, [](const Exchange& one) {
    return one.what == Exchange::What::push_pull || one.what == Exchange::What::ask ||
           one.what == Exchange::What::shared;
  });
  LossCurve curve;
  if (own_pace == course.end()) {
    curve = learn_together(school, job.strategy);
  } else {
    Job timed = job;
    timed.workers = workers;
    timed.steps = static_cast<int>(school.most_steps);
    timed.accesses = true;
    timed.trace = false;
    const auto simulated = simulate(cluster, timed);
    learning.mean_stale = mean_of(simulated.stale);
    curve = Replay(school, simulated, *own_pace).run();
  }
  learning.samples = curve.samples_to(learning.target);
  learning.loss = curve.least();
  learning.efficiency = std::isfinite(learning.samples) ? learning.reference / learning.samples : 0;
  return learning;
}

}  // namespace trireme::plan
