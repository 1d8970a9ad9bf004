// Where all of a step's gradients meet it is their mean that is clipped.
#include "tests/sync/loop.h"

namespace trireme::sync::test::clip_test {
namespace {

constexpr double kRate = 0.1, kClip = 1.2;
constexpr int kSteps = 11, kRanks = 3;

double norm_of(const Vector& x) {
  double square = 0;
  for (double value : x) square += value * value;
  return std::sqrt(square);
}

// Of one worker with everybody's batches; `clip` 0: any norm.
Vector sequential(double clip) {
  auto w = start();
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Vector> gradients;
    for (int j = 0; j < kRanks; ++j) gradients.push_back(Losses().gradient(j, step, w));
    const auto g = mean(gradients);
    const double norm = norm_of(g);
    w = plus(w, -kRate * (clip > 0 && norm > clip ? clip / norm : 1), g);
  }
  return w;
}

class ClipsMeans : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Each, ClipsMeans,
                         ::testing::Values("ps-bsp", "ps-ssp:s=0", "stale-allreduce:s=0", "post-local-sgd:warmup=1"));

TEST_P(ClipsMeans, AsOneWorkerWould) {
  ASSERT_GT(norm_of(plus(sequential(0), -1, sequential(kClip))), 0.1);  // it matters here
  const auto traces = run(kRanks, GetParam(), {}, kSteps, kRate, kSteps - 1, kClip);
  for (const auto& result : traces.result) expect_near(result, sequential(kClip), "result");
  for (const auto& model : traces.model) expect_near(model, sequential(kClip), "model");
}

TEST_P(ClipsMeans, SendsWhatItSendsWithoutClipping) {
  const auto with = run(2, GetParam(), {}, kSteps, kRate, -1, kClip), without = run(2, GetParam(), {}, kSteps, kRate);
  for (std::size_t rank : {0, 1}) EXPECT_EQ(with.report[rank].bytes_sent, without.report[rank].bytes_sent);
}

TEST(LateClip, ZeroIsAnyNorm) {
  const auto none = run(2, "stale-allreduce:clip=0", {}, kSteps, kRate);
  const auto huge = run(2, "stale-allreduce:clip=1e30", {}, kSteps, kRate);
  EXPECT_EQ(none.result, huge.result);
  EXPECT_NE(none.result[0], start());
}

}  // namespace
}  // namespace trireme::sync::test::clip_test
