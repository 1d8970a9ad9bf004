// A training loop without LibTorch: quadratic losses that differ by worker and step, plain SGD, and the calls of a
// strategy in their documented order. Beside it what a plain sequential oracle needs.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/net/memory/inproc.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/server/server.h"
#include "trireme/sync/clip.h"
#include "trireme/sync/exchange/flat_exchange.h"
#include "trireme/sync/run_step.h"
#include "trireme/sync/strategies.h"
#include "trireme/sync/strategies/hogwild.h"

namespace trireme::sync::test {

inline constexpr std::size_t kCount = 17;
using Vector = std::vector<double>;

// A number in [0, 1) for each key.
inline double uniform(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = (a * 0x9E3779B97F4A7C15u) ^ (b + 1) * 0xBF58476D1CE4E5B9u ^ (c + 1) * 0x94D049BB133111EBu;
  for (int i = 0; i < 3; ++i) {
    x ^= x >> 31;
    x *= 0xD6E8FEB86659FD93u;
  }
  return static_cast<double>(x >> 11) * 0x1p-53;
}

// loss_j(w) = ½ Σ_i h_ij (w_i − t_ij(step))²: curvature h between 0.5 and 1.5, targets between −1 and 1 around zero.
struct Losses {
  bool noisy = true;    // whether targets change from step to step
  bool shared = false;  // whether all learners have the same
  double gradient(int learner, std::int64_t step, std::size_t i, double w) const {
    const auto who = static_cast<std::uint64_t>(shared ? 0 : learner);
    const double curvature = 0.5 + uniform(1, who, i);
    const double target = 2 * uniform(2 + (noisy ? static_cast<std::uint64_t>(step) : 0), who, i) - 1;
    return curvature * (w - target);
  }
  Vector gradient(int learner, std::int64_t step, const Vector& w) const {
    Vector result(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) result[i] = gradient(learner, step, i, w[i]);
    return result;
  }
};

inline double start_value(std::size_t i) { return 0.25 * static_cast<double>(i) - 1.5; }
inline Vector start() {
  Vector w(kCount);
  for (std::size_t i = 0; i < kCount; ++i) w[i] = start_value(i);
  return w;
}

// One worker's learner, in the transport's heap; weights of its own, or those that all share.
struct Learner {
  explicit Learner(Communicator& world) : memory(world.allocate<float>(kCount)), grads(world.allocate<float>(kCount)) {
    reset();
  }
  Learner(Communicator& world, const Traits& traits) : grads(world.allocate<float>(kCount)) {
    const bool shared = traits.shares_memory && world.transport() == "inproc";
    memory = shared ? shared_weights(world, kCount) : world.allocate<float>(kCount);
    if (!shared || world.rank() == 0) reset();
  }
  void reset() const {
    for (std::size_t i = 0; i < kCount; ++i) weights()[i] = static_cast<float>(start_value(i));
  }
  std::span<float> weights() const { return {memory.get(), kCount}; }
  std::span<float> gradient() const { return {grads.get(), kCount}; }
  Replica replica(const Strategy& strategy) const {
    return {weights(), strategy.traits().uses_gradient ? gradient() : std::span<float>()};
  }
  std::shared_ptr<float[]> memory, grads;
};

inline Vector values(std::span<const float> from) { return Vector(from.begin(), from.end()); }

// Plain SGD. Weights are read and written as relaxed atomics: hogwild's race by design, and TSan shall see the others.
inline void descend(const Learner& learner, double lr) {
  for (std::size_t i = 0; i < kCount; ++i) {
    std::atomic_ref weight(learner.weights()[i]);
    weight.store(weight.load(std::memory_order_relaxed) - static_cast<float>(lr) * learner.gradient()[i],
                 std::memory_order_relaxed);
  }
}

// Forward and backward: the gradient, scaled as the strategy wants it, and exchanged where it does so in backward.
inline void compute(Communicator& world, Strategy& strategy, const Losses& losses, const Learner& learner, int number,
                    std::int64_t step) {
  const double scale = strategy.traits().shares_gradient ? 1.0 / world.size() : 1.0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float weight = std::atomic_ref(learner.weights()[i]).load(std::memory_order_relaxed);
    const double g = losses.gradient(number, step, i, weight);
    learner.gradient()[i] = static_cast<float>(scale * g);
  }
  exchange_flat(strategy, learner.gradient(), {{"w", kCount}});
}

class FlatWorker : public Worker {
 public:
  FlatWorker(Communicator& world, Strategy& strategy, const Losses& losses, const Learner& learner, double clip = 0)
      : world_(world),
        strategy_(strategy),
        losses_(losses),
        learner_(learner),
        clip_(stricter(clip, strategy.most_norm())) {}
  bool compute(const Step& step) override {
    test::compute(world_, strategy_, losses_, learner_, world_.rank(), step.number);
    return true;
  }
  void update(const Step& step) override {
    shorten(learner_.gradient(), clip_);
    descend(learner_, step.lr);
  }

 private:
  Communicator& world_;
  Strategy& strategy_;
  const Losses losses_;
  const Learner& learner_;
  const double clip_;
};

// `watch(step, weights)` after every step.
inline void train(Communicator& world, Strategy& strategy, const Losses& losses, const Learner& learner,
                  std::int64_t steps, double lr,
                  const std::function<void(std::int64_t, std::span<const float>)>& watch = {}, double clip = 0) {
  const std::vector<Replica> replicas{learner.replica(strategy)};
  strategy.begin(replicas);
  FlatWorker worker(world, strategy, losses, learner, clip);
  for (std::int64_t number = 0; number < steps; ++number) {
    run_step(strategy, worker, {number, lr});
    if (watch) watch(number, learner.weights());
    // Those at their own pace share out the batches: none is done before another begins, even on a loaded machine.
    if (strategy.traits().own_pace && number % 8 == 7) world.barrier();
  }
  while (strategy.drain()) worker.update({steps, lr});
  strategy.finish();
}

// What a run leaves behind, by rank.
struct Traces {
  std::vector<std::vector<Vector>> after_step;  // [rank][step]
  std::vector<Vector> result;
  std::vector<Vector> model;  // asked for after the last step, before finish
  std::vector<Report> report;
};

// A parameter server for strategies that need one: threads of this process.
class Servers {
 public:
  Servers(bool needed, int workers) {
    if (!needed) return;
    coordinator_.emplace(ps::CoordinatorOptions{.key = key_, .workers = workers, .servers = 2});
    for (int k = 0; k < 2; ++k) {
      servers_.push_back(std::make_unique<ps::Server>(
          ps::ServerOptions{.at = coordinator_->endpoint(), .key = key_, .name = "server-" + std::to_string(k)}));
    }
  }
  // Null where there are none.
  std::unique_ptr<ps::Client> client(int rank) {
    if (!coordinator_) return nullptr;
    return std::make_unique<ps::Client>(ps::ClientOptions{.at = coordinator_->endpoint(), .key = key_, .rank = rank});
  }

 private:
  const net::Key key_ = net::generate_key();
  std::optional<ps::Coordinator> coordinator_;
  std::vector<std::unique_ptr<ps::Server>> servers_;
};

using World = std::vector<std::unique_ptr<net::Transport>>;

// Runs a strategy with one learner per worker. The model is asked for after step `model_after`.
inline Traces run(World world_of_threads, const std::string& text, const Losses& losses, std::int64_t steps, double lr,
                  std::int64_t model_after = -1, double clip = 0) {
  const auto ranks = world_of_threads.size();
  Traces traces;
  traces.after_step.resize(ranks);
  traces.result.resize(ranks);
  traces.model.resize(ranks);
  traces.report.resize(ranks);
  const auto choice = Choice::parse(text);
  Servers servers(choice.kind->needs_servers, static_cast<int>(ranks));
  auto body = [&](Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const auto client = servers.client(world.rank());
    const Learner learner(world, choice.traits());
    auto strategy = choice.make({.world = world,
                                 .steps_per_epoch = steps,
                                 .total_steps = steps,
                                 .seed = 7,
                                 .client = client.get(),
                                 .tensors = {{"w", kCount}},
                                 .update = {.name = "sgd"},
                                 .clips = clip > 0});
    // Others write what this one would look at.
    const bool shared = choice.traits().shares_memory || choice.traits().owns_step;
    train(
        world, *strategy, losses, learner, steps, lr,
        [&](std::int64_t step, std::span<const float> weights) {
          if (!shared) traces.after_step[rank].push_back(values(weights));
          if (step != model_after) return;
          std::vector<float> out(kCount);
          strategy->model(out);
          traces.model[rank] = values(out);
        },
        clip);
    traces.result[rank] = values(learner.weights());
    traces.report[rank] = strategy->report();
    if (client) world.barrier();  // nobody leaves while others wait for it
  };
  run_ranks(std::move(world_of_threads), body, Options{});
  return traces;
}
inline Traces run(int ranks, const std::string& text, const Losses& losses, std::int64_t steps, double lr,
                  std::int64_t model_after = -1, double clip = 0) {
  return run(net::inproc_world(ranks), text, losses, steps, lr, model_after, clip);
}

// ---- Oracles' arithmetic ----

inline Vector mean(const std::vector<Vector>& all) {
  Vector result(all[0].size());
  for (const auto& one : all) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += one[i] / static_cast<double>(all.size());
  }
  return result;
}
// a + factor·b
inline Vector plus(Vector a, double factor, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
  return a;
}
inline double rms_distance(const std::vector<Vector>& all, const Vector& centre) {
  double square = 0;
  for (const auto& one : all) {
    for (std::size_t i = 0; i < one.size(); ++i) square += (one[i] - centre[i]) * (one[i] - centre[i]);
  }
  return std::sqrt(square / static_cast<double>(all.size()));
}

inline void expect_near(const Vector& got, const Vector& expected, const std::string& where, double within = 2e-5) {
  ASSERT_EQ(got.size(), expected.size()) << where;
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], within) << where << ", element " << i;
}

}  // namespace trireme::sync::test
