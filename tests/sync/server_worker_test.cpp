// A parameter server's workers against plain sequential re-implementations.
#include <gmock/gmock.h>

#include "tests/sync/loop.h"

namespace trireme::sync::test {
namespace {

constexpr double kRate = 0.1;
constexpr int kSteps = 13;

class ServerWorkers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ServerWorkers, ::testing::Values(1, 2, 3));

TEST_P(ServerWorkers, ARoundIsTheMeanOfGradients) {
  const auto ranks = GetParam();
  auto w = start();
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Vector> gradients;
    for (int j = 0; j < ranks; ++j) gradients.push_back(Losses().gradient(j, step, w));
    w = plus(w, -kRate, mean(gradients));
  }
  const auto bsp = run(ranks, "ps-bsp", {}, kSteps, kRate);
  for (const auto& result : bsp.result) expect_near(result, w, "ps-bsp");
  const auto ssp = run(ranks, "ps-ssp:s=0", {}, kSteps, kRate);
  EXPECT_EQ(ssp.result, bsp.result);  // in every bit
  for (const auto& report : bsp.report) {
    EXPECT_EQ(report.bytes_sent, (2 * kSteps + 1) * kCount * sizeof(float));  // and the weights it began with
    EXPECT_FALSE(report.compressed);
    // Whoever's gradient comes last in a round has seen none of the others' updates.
    std::int64_t steps = 0;
    for (auto [by, count] : report.stale) steps += count;
    EXPECT_EQ(steps, kSteps);
  }
}

#ifndef __SANITIZE_THREAD__  // weights change under the reader's eyes: that is what it is for, and a race
TEST(ServerWorker, ReadingLiveTrainsToo) {
  const Losses losses{.noisy = false, .shared = true};
  const auto traces = run(3, "ps-async:read=live", losses, 160, 0.2);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(losses.gradient(0, 0, i, traces.result[0][i]), 0, 0.01);
}

#endif

// The model is what all have pushed, on every worker.
TEST(ServerWorker, TheModelHasAllPushes) {
  const auto traces = run(2, "ps-ssp:s=5", {}, 40, kRate, 39);
  EXPECT_EQ(traces.model[0], traces.result[0]);
  EXPECT_EQ(traces.model[1], traces.result[0]);
}

}  // namespace
}  // namespace trireme::sync::test
