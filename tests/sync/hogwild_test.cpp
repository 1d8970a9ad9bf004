// Shared weights without locks.
#include <gmock/gmock.h>

#include "tests/collective/worlds.h"
#include "tests/sync/loop.h"
#include "trireme/base/error.h"

namespace trireme::sync::test {
namespace {

TEST(Hogwild, WeightsAreTheSameMemory) {
  std::mutex mutex;
  std::vector<std::shared_ptr<float[]>> all;  // outlives the world
  run_threads(3, [&](Communicator& world) {
    auto mine = shared_weights(world, 1000);
    std::lock_guard lock(mutex);
    all.push_back(mine);
  });
  for (const auto& one : all) EXPECT_EQ(one.get(), all[0].get());
  EXPECT_EQ(all[0][999], 0.0f);
}

// A convex loss: however the workers interleave, together they find its optimum, and every step counts.
TEST(Hogwild, LosesNoTraining) {
  const Losses losses{.noisy = false, .shared = true};
  for (int ranks : {1, 2, 3, 4}) {
    const auto traces = run(ranks, "hogwild", losses, 200, 0.2, 399);
    for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(losses.gradient(0, 0, i, traces.result[0][i]), 0, 1e-4);
    std::int64_t steps = 0;
    for (const auto& report : traces.report) {
      for (const auto& [lag, count] : report.stale) {
        EXPECT_GE(lag, 0);
        steps += count;
      }
    }
    EXPECT_EQ(steps, 200 * ranks);
    for (const auto& model : traces.model) EXPECT_EQ(model, traces.model[0]);
  }
}

// One worker after the other: N steps with 1/N of the gradient each, the last to come sees all before.
TEST(Hogwild, StepsAddUp) {
  run_threads(3, [](Communicator& world) {
    auto strategy = Choice::parse("hogwild").make({.world = world});
    const Learner learner(world, strategy->traits());
    const std::vector<Replica> replicas{learner.replica(*strategy)};
    strategy->begin(replicas);
    Vector w = start();
    for (int turn = 0; turn < 6; ++turn) {
      const int rank = turn % 3;
      w = plus(w, -0.1 / 3, Losses().gradient(rank, turn, w));
      if (rank == world.rank()) {
        strategy->before_forward({turn, 0.1});
        compute(world, *strategy, {}, learner, rank, turn);
        strategy->after_backward({turn, 0.1});
        descend(learner, 0.1);
        strategy->after_step({turn, 0.1});
        expect_near(values(learner.weights()), w, "turn " + std::to_string(turn));
      }
      world.barrier();
    }
    EXPECT_EQ(strategy->report().stale, (std::map<std::int64_t, std::int64_t>{{0, 2}}));
    strategy->finish();
  });
}

TEST(Hogwild, NeedsThreads) {
  for (const auto& factory : trireme::test::world_factories()) {
    if (factory.name == "inproc") continue;
    try {
      run_ranks(
          factory.make(2), [](Communicator& world) { Choice::parse("hogwild").make({.world = world}); }, Options{});
      ADD_FAILURE() << factory.name;
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(), "hogwild needs workers that share memory: use --launch threads");
    }
  }
}

}  // namespace
}  // namespace trireme::sync::test
