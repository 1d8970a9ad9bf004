// The family that averages models now and then, against plain sequential re-implementations.
#include <gmock/gmock.h>

#include "tests/sync/loop.h"

namespace trireme::sync::test::local_test {
namespace {

constexpr double kRate = 0.1;
constexpr int kSteps = 13;

std::string at(int ranks, std::size_t rank, std::size_t step) {
  return std::to_string(ranks) + " ranks, rank " + std::to_string(rank) + ", step " + std::to_string(step);
}

// Runs `text` and compares every worker's weights after every step with `expected(w, step)`, which changes all workers'
// weights from those before the step to those after it.
using Advance = std::function<void(std::vector<Vector>& w, int step)>;
Traces compare(int ranks, const std::string& text, const Advance& advance) {
  auto traces = run(ranks, text, {}, kSteps, kRate, kSteps - 1);
  std::vector<Vector> w(static_cast<std::size_t>(ranks), start());
  for (int step = 0; step < kSteps; ++step) {
    advance(w, step);
    for (std::size_t rank = 0; rank < w.size(); ++rank) {
      expect_near(traces.after_step[rank][static_cast<std::size_t>(step)], w[rank],
                  text + " " + at(ranks, rank, static_cast<std::size_t>(step)));
    }
  }
  return traces;
}

void step_each(std::vector<Vector>& w, int step) {
  for (std::size_t j = 0; j < w.size(); ++j) {
    w[j] = plus(w[j], -kRate, Losses().gradient(static_cast<int>(j), step, w[j]));
  }
}
void mean_gradient_step(std::vector<Vector>& w, int step) {
  std::vector<Vector> gradients;
  for (std::size_t j = 0; j < w.size(); ++j) gradients.push_back(Losses().gradient(static_cast<int>(j), step, w[j]));
  for (auto& one : w) one = plus(one, -kRate, mean(gradients));
}
void average(std::vector<Vector>& w) {
  const auto m = mean(w);
  for (auto& one : w) one = m;
}

class Local : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Local, ::testing::Values(1, 2, 3, 4));

TEST_P(Local, AllreduceTakesTheMeanOfGradients) { compare(GetParam(), "allreduce", mean_gradient_step); }

TEST_P(Local, EveryStepEqualsAllreduce) { compare(GetParam(), "local-sgd:H=1", mean_gradient_step); }

TEST_P(Local, AveragesModelsEveryHSteps) {
  std::vector<Vector> last;
  auto traces = compare(GetParam(), "local-sgd:H=4", [&](std::vector<Vector>& w, int step) {
    step_each(w, step);
    if (step % 4 == 3) average(w);
    last = w;
  });
  for (int rank = 0; rank < GetParam(); ++rank) {
    expect_near(traces.model[static_cast<std::size_t>(rank)], mean(last), "model");
    expect_near(traces.result[static_cast<std::size_t>(rank)], mean(last), "result");
    EXPECT_NEAR(traces.report[static_cast<std::size_t>(rank)].consensus, rms_distance(last, mean(last)), 1e-5);
  }
}

TEST_P(Local, PostLocalBeginsWithTheMeanOfGradients) {
  compare(GetParam(), "post-local-sgd:H=3,warmup=0.4", [](std::vector<Vector>& w, int step) {
    if (step < 5) {  // 0.4 of 13
      mean_gradient_step(w, step);
      return;
    }
    step_each(w, step);
    if (step % 3 == 2) average(w);
  });
}

TEST_P(Local, AverageAtEndMeetsOnce) {
  std::vector<Vector> last;
  auto traces = compare(GetParam(), "average-at-end", [&](std::vector<Vector>& w, int step) {
    step_each(w, step);
    last = w;
  });
  for (const auto& result : traces.result) expect_near(result, mean(last), "result");
}

TEST_P(Local, ElasticAveraging) {
  const double alpha = 0.2;
  Vector centre = start();
  auto traces = compare(GetParam(), "easgd:tau=2,alpha=0.2", [&](std::vector<Vector>& w, int step) {
    step_each(w, step);
    if (step % 2 == 0) return;
    Vector next = centre;
    for (const auto& one : w) next = plus(next, alpha, plus(one, -1, centre));
    for (auto& one : w) one = plus(one, -alpha, plus(one, -1, centre));
    centre = next;
  });
  for (const auto& result : traces.result) expect_near(result, centre, "result");
  for (const auto& model : traces.model) expect_near(model, centre, "model");
}

TEST_P(Local, DiLoCo) {
  const double rate = 0.7, mu = 0.9;
  Vector theta = start(), momentum(kCount);
  std::vector<Vector> last;
  auto outer = [&](std::vector<Vector>& w) {
    const auto delta = plus(theta, -1, mean(w));
    momentum = plus(delta, mu, momentum);
    theta = plus(plus(theta, -rate, delta), -rate * mu, momentum);
    for (auto& one : w) one = theta;
  };
  auto traces =
      compare(GetParam(), "diloco:H=5,outer-lr=0.7,outer-momentum=0.9", [&](std::vector<Vector>& w, int step) {
        step_each(w, step);
        if (step % 5 == 4) outer(w);
        last = w;
      });
  for (const auto& model : traces.model) expect_near(model, theta, "model");
  outer(last);  // what was left
  for (const auto& result : traces.result) expect_near(result, theta, "result");
}

TEST(LocalState, DiLoCoKeepsItsMomentum) {
  run_threads(2, [](Communicator& world) {
    auto strategy = Choice::parse("diloco:H=1").make({.world = world});
    const Learner learner(world);
    train(world, *strategy, {}, learner, 1, 0.1);
    auto state = strategy->state();
    ASSERT_EQ(state.size(), 2u);
    EXPECT_EQ(state[1].name, "momentum");
    EXPECT_THAT(values(state[1].values), ::testing::Contains(::testing::Ne(0.0)));
  });
}

}  // namespace
}  // namespace trireme::sync::test::local_test
