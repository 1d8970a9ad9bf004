// The synchronous gossips against plain sequential re-implementations, and what they promise of means.
#include "tests/sync/loop.h"
#include "trireme/sync/strategies/graph.h"

namespace trireme::sync::test::gossip_test {
namespace {

constexpr double kRate = 0.1;
constexpr int kSteps = 12;
constexpr std::uint64_t kSeed = 7;  // as run() gives it

Vector gradient_of(std::size_t worker, int step, const Vector& w) {
  return Losses().gradient(static_cast<int>(worker), step, w);
}

class Gossip : public ::testing::TestWithParam<std::tuple<int, std::string_view>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  std::string shape() const { return std::string(std::get<1>(GetParam())); }
  std::string where(int step) const {
    return shape() + " of " + std::to_string(ranks()) + ", step " + std::to_string(step);
  }
};
INSTANTIATE_TEST_SUITE_P(Graphs, Gossip,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5), ::testing::ValuesIn(shape_names())));

TEST_P(Gossip, DpsgdMixesWhileItComputes) {
  const auto traces = run(ranks(), "gossip-dpsgd:graph=" + shape(), {}, kSteps, kRate, kSteps - 1);
  const Graph graph(parse_shape(shape()), ranks(), kSeed);
  std::vector<Vector> x(static_cast<std::size_t>(ranks()), start());
  for (int step = 0; step < kSteps; ++step) {
    auto next = x;
    Vector expected_mean = mean(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (int j : graph.neighbours(static_cast<int>(i), step)) {
        const double weight = graph.weight(static_cast<int>(i), j, step);
        next[i] = plus(plus(next[i], weight, x[static_cast<std::size_t>(j)]), -weight, x[i]);
      }
      next[i] = plus(next[i], -kRate, gradient_of(i, step, x[i]));
      expected_mean = plus(expected_mean, -kRate / ranks(), gradient_of(i, step, x[i]));
    }
    x = next;
    expect_near(mean(x), expected_mean, where(step));  // nothing but the gradients moves the mean
    for (std::size_t i = 0; i < x.size(); ++i) {
      expect_near(traces.after_step[i][static_cast<std::size_t>(step)], x[i], where(step));
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_near(traces.model[i], mean(x), "model");
    expect_near(traces.result[i], mean(x), "result");
    EXPECT_NEAR(traces.report[i].consensus, rms_distance(x, mean(x)), 1e-5);
  }
}

TEST_P(Gossip, SgpPushesSumsAndRemovesTheBias) {
  const auto traces = run(ranks(), "gossip-sgp:graph=" + shape(), {}, kSteps, kRate, kSteps - 1);
  const Graph graph(parse_shape(shape()), ranks(), kSeed);
  const auto n = static_cast<std::size_t>(ranks());
  std::vector<Vector> x(n, start()), z = x;
  std::vector<double> w(n, 1.0);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Vector> next(n, Vector(kCount));
    std::vector<double> next_w(n);
    for (std::size_t j = 0; j < n; ++j) {
      auto to = graph.targets(static_cast<int>(j), step);
      to.push_back(static_cast<int>(j));
      for (int i : to) {
        const auto at = static_cast<std::size_t>(i);
        next[at] = plus(next[at], 1.0 / static_cast<double>(to.size()), x[j]);
        next_w[at] += w[j] / static_cast<double>(to.size());
      }
    }
    for (std::size_t i = 0; i < n; ++i) next[i] = plus(next[i], -kRate, gradient_of(i, step, z[i]));
    x = next;
    w = next_w;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += w[i];
      for (std::size_t k = 0; k < kCount; ++k) z[i][k] = x[i][k] / w[i];
      expect_near(traces.after_step[i][static_cast<std::size_t>(step)], z[i], where(step), 1e-4);
    }
    ASSERT_NEAR(sum, ranks(), 1e-9);
  }
  for (std::size_t i = 0; i < n; ++i) {
    expect_near(traces.model[i], mean(x), "model");
    expect_near(traces.result[i], mean(x), "result");
    EXPECT_NEAR(traces.report[i].consensus, rms_distance(z, mean(x)), 1e-4);
  }
}

// Workers that were apart come together once the rate is zero.
TEST(GossipConsensus, DistanceShrinks) {
  for (const std::string name : {"gossip-dpsgd", "gossip-sgp"}) {
    for (auto shape : shape_names()) {
      run_threads(4, [&](Communicator& world) {
        auto strategy = Choice::parse(name + ":graph=" + std::string(shape)).make({.world = world, .seed = 3});
        const Learner learner(world);
        const std::vector<Replica> replicas{learner.replica(*strategy)};
        strategy->begin(replicas);
        std::vector<float> out(kCount);
        double apart = 0;
        for (std::int64_t number = 0; number < 60; ++number) {
          const Step step{number, number < 5 ? 0.2 : 0.0};
          strategy->before_forward(step);
          compute(world, *strategy, {}, learner, world.rank(), number);
          strategy->after_backward(step);
          descend(learner, step.lr);
          strategy->after_step(step);
          if (number == 4) {
            strategy->model(out);
            apart = strategy->report().consensus;
          }
        }
        const auto before = values(out);
        strategy->model(out);
        EXPECT_GT(apart, 0.01);
        EXPECT_LT(strategy->report().consensus, 1e-3 * apart) << name << " on " << shape;
        expect_near(values(out), before, "the mean stays", 1e-4);
        strategy->finish();
      });
    }
  }
}

TEST(GossipBytes, AreAModelPerNeighbour) {
  const auto dpsgd = run(4, "gossip-dpsgd:graph=ring", {}, 10, kRate);
  EXPECT_EQ(dpsgd.report[1].bytes_sent, 10 * 2 * kCount * sizeof(float));
  const auto sgp = run(4, "gossip-sgp", {}, 10, kRate);
  EXPECT_EQ(sgp.report[1].bytes_sent, 10 * (kCount * sizeof(float) + sizeof(double)));
}

}  // namespace
}  // namespace trireme::sync::test::gossip_test
