// Asynchronous gossip: whatever the interleaving, steps alone move the mean.
#include <thread>

#include "tests/sync/loop.h"
#include "trireme/sync/strategies/graph.h"

namespace trireme::sync::test {
namespace {

constexpr double kRate = 0.05;

// Each worker takes a number of steps of its own, at a pace drawn from the seed; some are much slower.
void interleave(int ranks, const std::string& text, std::uint64_t seed) {
  std::mutex mutex;
  Vector moved(kCount);  // by all optimizers; guarded by mutex
  std::vector<Vector> results;
  std::map<std::int64_t, std::int64_t> stale;
  run_threads(ranks, [&](Communicator& world) {
    const auto rank = static_cast<std::uint64_t>(world.rank());
    auto strategy = Choice::parse(text).make({.world = world, .seed = seed});
    EXPECT_TRUE(strategy->traits().own_pace);
    const Learner learner(world);
    const std::vector<Replica> replicas{learner.replica(*strategy)};
    strategy->begin(replicas);
    const auto steps = static_cast<std::int64_t>(8 + draw(seed, rank, 1) % 15);
    Vector mine(kCount);
    for (std::int64_t number = 0; number < steps; ++number) {
      const Step step{number, kRate};
      strategy->before_forward(step);
      compute(world, *strategy, {}, learner, world.rank(), number);
      const auto nap = draw(seed, rank, 2, static_cast<std::uint64_t>(number));
      if (nap % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(nap % (rank == 1 ? 1000 : 200)));
      strategy->after_backward(step);
      descend(learner, kRate);
      for (std::size_t i = 0; i < kCount; ++i) mine[i] -= kRate * learner.gradient()[i];
      strategy->after_step(step);
    }
    // The model is the mean of all, before as after they have agreed on it.
    std::vector<float> out(kCount);
    strategy->model(out);
    EXPECT_GE(strategy->report().consensus, 0);
    strategy->finish();
    expect_near(values(learner.weights()), values(out), "model and result");
    std::lock_guard lock(mutex);
    moved = plus(moved, 1, mine);
    results.push_back(values(learner.weights()));
    for (const auto& [lag, count] : strategy->report().stale) stale[lag] += count;
    if (ranks > 1 && Graph::active(world.rank())) {
      EXPECT_GE(strategy->report().bytes_sent, static_cast<std::size_t>(steps) * kCount * sizeof(float));
    }
  });
  for (const auto& result : results) {
    expect_near(result, plus(start(), 1.0 / ranks, moved), text + ", seed " + std::to_string(seed), 1e-4);
  }
  EXPECT_FALSE(stale.empty());
}

TEST(Adpsgd, StepsAloneMoveTheMean) {
  for (int ranks : {1, 2, 3, 4, 5}) {
    for (auto shape : shape_names()) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed)
        interleave(ranks, "gossip-adpsgd:graph=" + std::string(shape), seed);
    }
  }
}

// Two ranks, step by step: an active rank's weights after its step are the average less its own step.
TEST(Adpsgd, AveragesBeforeItSteps) {
  run_threads(2, [](Communicator& world) {
    auto strategy = Choice::parse("gossip-adpsgd").make({.world = world});
    const Learner learner(world);
    const std::vector<Replica> replicas{learner.replica(*strategy)};
    strategy->begin(replicas);
    Vector passive = start(), active = start();
    for (std::int64_t number = 0; number < 8; ++number) {
      const Step step{number, kRate};
      const int turn = static_cast<int>(number % 2);  // one at a time: the order is known
      const auto before = turn == 0 ? active : passive;
      if (turn == 0) {
        for (std::size_t i = 0; i < kCount; ++i) active[i] = passive[i] = (active[i] + passive[i]) / 2;
      }
      auto& mine = turn == 0 ? active : passive;
      mine = plus(mine, -kRate, Losses().gradient(turn, number, before));
      if (world.rank() == turn) {
        strategy->before_forward(step);
        compute(world, *strategy, {}, learner, turn, number);
        strategy->after_backward(step);
        descend(learner, kRate);
        strategy->after_step(step);
        expect_near(values(learner.weights()), mine, "step " + std::to_string(number));
      }
      world.barrier();
    }
    strategy->finish();
    expect_near(values(learner.weights()), mean({active, passive}), "result");
  });
}

}  // namespace
}  // namespace trireme::sync::test
