// CROSSBOW's synchronous model averaging with any number of learners, and the tuner that finds the number.
#include <numeric>

#include "tests/sync/loop.h"
#include "trireme/sync/learner_tuner.h"

namespace trireme::sync::test::sma_test {
namespace {

constexpr double kRate = 0.1;

// Plain sequential re-implementation. Learners are numbered over all workers.
struct Oracle {
  explicit Oracle(std::size_t learners) : w(learners, start()) {}
  void step(int number, double alpha, double mu, bool corrects) {
    const auto before = w;
    Vector next_z = z;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const auto c = plus(before[j], -1, z);
      if (corrects) {
        w[j] = plus(w[j], -alpha, c);
        next_z = plus(next_z, alpha, c);
      }
      w[j] = plus(w[j], -kRate, Losses().gradient(static_cast<int>(j), number, before[j]));
    }
    if (!corrects) return;
    next_z = plus(plus(next_z, mu, z), -mu, z_prev);
    z_prev = z;
    z = next_z;
  }
  std::vector<Vector> w;
  Vector z = start(), z_prev = start();
};

// Worker r has learners per_worker[r].
void compare(const std::vector<int>& per_worker, const std::string& settings, double alpha, double mu, int tau) {
  const int all = std::accumulate(per_worker.begin(), per_worker.end(), 0);
  run_threads(static_cast<int>(per_worker.size()), [&](Communicator& world) {
    auto strategy = Choice::parse("sma:" + settings).make({.world = world});
    int first = 0;
    for (int rank = 0; rank < world.rank(); ++rank) first += per_worker[static_cast<std::size_t>(rank)];
    std::vector<Learner> learners;
    std::vector<Replica> replicas;
    for (int j = 0; j < per_worker[static_cast<std::size_t>(world.rank())]; ++j) {
      replicas.push_back(learners.emplace_back(world).replica(*strategy));
    }
    strategy->begin(replicas);
    Oracle oracle(static_cast<std::size_t>(all));
    std::vector<float> out(kCount);
    for (int number = 0; number < 12; ++number) {
      const Step step{number, kRate};
      strategy->before_forward(step);
      for (std::size_t j = 0; j < learners.size(); ++j) {
        compute(world, *strategy, {}, learners[j], first + static_cast<int>(j), number);
      }
      strategy->after_backward(step);
      for (const auto& learner : learners) descend(learner, kRate);
      strategy->after_step(step);
      oracle.step(number, alpha, mu, number % tau == tau - 1);
      const auto where = settings + ", step " + std::to_string(number);
      for (std::size_t j = 0; j < learners.size(); ++j) {
        expect_near(values(learners[j].weights()), oracle.w[static_cast<std::size_t>(first) + j], where);
      }
      strategy->model(out);
      expect_near(values(out), oracle.z, where + ", z");
      EXPECT_NEAR(strategy->report().consensus, rms_distance(oracle.w, oracle.z), 1e-5) << where;
    }
    strategy->finish();
    for (const auto& learner : learners) expect_near(values(learner.weights()), oracle.z, "result");
  });
}

TEST(Sma, CorrectsTowardsAModelWithMomentum) {
  compare({1}, "learners=1", 0.5, 0.9, 1);
  compare({1, 1}, "momentum=0", 0.5, 0, 1);
  compare({1, 1, 1, 1, 1}, "momentum=0.9", 0.4, 0.9, 1);
  compare({1, 1, 1, 1}, "alpha=0.1,momentum=0.5,tau=3", 0.1, 0.5, 3);
}

TEST(Sma, CountsEveryLearnerOfEveryWorker) {
  compare({3}, "learners=3", 0.5, 0.9, 1);
  compare({2, 2}, "learners=2,tau=2", 0.5, 0.9, 2);
  compare({1, 3, 2}, "learners=auto", 1.0 / 3, 0.9, 1);
}

TEST(Sma, NewLearnersStartFromTheCentralModel) {
  run_threads(2, [](Communicator& world) {
    auto strategy = Choice::parse("sma").make({.world = world});
    EXPECT_EQ(strategy->traits().learners, 0);
    std::vector<Learner> learners{Learner(world)};
    std::vector<Replica> replicas{learners[0].replica(*strategy)};
    strategy->begin(replicas);
    std::int64_t number = 0;
    auto steps = [&](int count) {
      for (int i = 0; i < count; ++i, ++number) {
        strategy->before_forward({number, kRate});
        for (std::size_t j = 0; j < learners.size(); ++j) {
          compute(world, *strategy, {}, learners[j], world.rank() + 2 * static_cast<int>(j), number);
        }
        strategy->after_backward({number, kRate});
        for (const auto& learner : learners) descend(learner, kRate);
        strategy->after_step({number, kRate});
      }
    };
    steps(5);
    std::vector<float> z(kCount);
    strategy->model(z);
    const auto old = values(learners[0].weights());
    replicas.push_back(learners.emplace_back(world).replica(*strategy));
    strategy->begin(replicas);
    expect_near(values(learners[0].weights()), old, "those that stay", 0);
    expect_near(values(learners[1].weights()), values(z), "the new one", 0);
    steps(5);
    learners.pop_back();  // and one fewer
    replicas.pop_back();
    strategy->begin(replicas);
    steps(5);
    strategy->model(z);
    strategy->finish();
    expect_near(values(learners[0].weights()), values(z), "result", 0);
  });
}

// ---- The tuner ----

// Advice until it settles, for a machine that trains at rates[learners − 1].
std::string advice(LearnerTuner tuner, const std::vector<double>& rates) {
  std::string said;
  for (int i = 0; i < 20; ++i) {
    const auto next = tuner.window(rates.at(static_cast<std::size_t>(tuner.learners()) - 1));
    said += next == Advice::more ? '+' : next == Advice::fewer ? '-' : '.';
    if (tuner.settled() && next == Advice::stay) break;
  }
  return said + std::to_string(tuner.learners());
}

TEST(LearnerTuner, GrowsWhileItPays) {
  EXPECT_EQ(advice(LearnerTuner(), {100, 190, 260, 262, 400}), "+++-.3");
  EXPECT_EQ(advice(LearnerTuner(), {100, 99}), "+-.1");
  EXPECT_EQ(advice(LearnerTuner(), {100, 109.9}), "+-.1");
  EXPECT_EQ(advice(LearnerTuner(1, 8, 0.01), {100, 104.9, 104.9}), "++-.2");
}

TEST(LearnerTuner, StopsAtTheMost) {
  EXPECT_EQ(advice(LearnerTuner(1, 3), {1, 2, 3, 4}), "++.3");
  EXPECT_EQ(advice(LearnerTuner(1, 1), {1}), ".1");
}

TEST(LearnerTuner, WantsNoMoreWhereNothingMoves) { EXPECT_EQ(advice(LearnerTuner(), {0, 0}), "+-.1"); }

}  // namespace
}  // namespace trireme::sync::test::sma_test
