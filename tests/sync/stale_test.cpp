// Stale all-reduce: the mean that is applied is s steps old, never more; the last ones are not lost.
#include "tests/sync/loop.h"

namespace trireme::sync::test::stale_test {
namespace {

constexpr double kRate = 0.1;
constexpr int kSteps = 11;

class Stale : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(RanksAndBounds, Stale,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values(0, 1, 3, 20)));

// What is applied is measured ahead, and no longer than may be.
TEST_P(Stale, AppliesTheMeanOfSStepsAgo) {
  const auto [ranks, s] = GetParam();
  constexpr double kAhead = 0.5, kClip = 1.5;
  const auto strategy = "stale-allreduce:ahead=0.5,clip=1.5,s=" + std::to_string(s);
  const auto traces = run(ranks, strategy, {}, kSteps, kRate, kSteps - 1);
  std::vector<Vector> means;  // of the gradients of each step
  Vector w = start(), before = w;
  for (int step = 0; step < kSteps; ++step) {
    Vector ahead = w;
    for (std::size_t i = 0; i < w.size(); ++i) ahead[i] += kAhead * s * (w[i] - before[i]);
    before = w;
    std::vector<Vector> gradients;
    for (int rank = 0; rank < ranks; ++rank) gradients.push_back(Losses().gradient(rank, step, ahead));
    means.push_back(mean(gradients));
    double norm = 0;
    for (double g : means.back()) norm += g * g;
    norm = std::sqrt(norm);
    if (s > 0 && norm > kClip) {
      for (double& g : means.back()) g *= kClip / norm;
    }
    if (step >= s) w = plus(w, -kRate, means[static_cast<std::size_t>(step - s)]);
    for (const auto& trace : traces.after_step) {
      expect_near(trace[static_cast<std::size_t>(step)], w, "step " + std::to_string(step));
    }
  }
  for (const auto& model : traces.model) expect_near(model, w, "model");
  for (int step = std::max(0, kSteps - s); step < kSteps; ++step) {
    w = plus(w, -kRate, means[static_cast<std::size_t>(step)]);
  }
  for (const auto& result : traces.result) expect_near(result, w, "result");
}

TEST_P(Stale, ReportsItsLag) {
  const auto [ranks, s] = GetParam();
  const auto traces = run(ranks, "stale-allreduce:s=" + std::to_string(s), {}, kSteps, kRate);
  for (const auto& report : traces.report) {
    std::int64_t steps = 0;
    for (const auto& [lag, count] : report.stale) {
      EXPECT_LE(lag, s);
      if (lag < s) {
        EXPECT_EQ(count, 1);  // only while the pipe fills
      }
      steps += count;
    }
    EXPECT_EQ(steps, kSteps);
  }
}

TEST(StaleBound, ZeroIsAllreduce) {
  const auto stale = run(3, "stale-allreduce:s=0", {}, kSteps, kRate);
  const auto plain = run(3, "allreduce", {}, kSteps, kRate);
  EXPECT_EQ(stale.result, plain.result);
}

}  // namespace
}  // namespace trireme::sync::test::stale_test
