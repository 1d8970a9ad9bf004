// A parameter server's workers against plain sequential re-implementations.
#include <gmock/gmock.h>

#include "tests/sync/loop.h"

namespace trireme::sync::test::server_worker_test {
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

// A model that is large enough to be compressed, drawn to about the same target by all workers.
struct Wide {
  static constexpr std::size_t kWide = 64 * 200;  // 1,600 to a shard
  std::vector<std::vector<float>> result, model;
  std::vector<Report> report;

  Wide(const std::string& strategy, std::string_view codec, int steps, double lr) : result(2), model(2), report(2) {
    Servers servers(true, 2);
    run_ranks(
        net::inproc_world(2),
        [&](Communicator& world) {
          const auto rank = static_cast<std::size_t>(world.rank());
          const auto client = servers.client(world.rank());
          auto made = Choice::parse(strategy).make({.world = world,
                                                    .seed = 7,
                                                    .client = client.get(),
                                                    .tensors = {{"w", kWide, 64}},
                                                    .update = {.name = "sgd"},
                                                    .compress = {codec, ""}});
          auto weights = made->weights_memory(kWide), gradient = made->gradient_memory(kWide);
          std::fill_n(weights.get(), kWide, 0.0f);
          const float tilt = rank == 0 ? 0.01f : -0.01f;
          const Replica replica{{weights.get(), kWide}, {gradient.get(), kWide}};
          made->begin({&replica, 1});
          for (int step = 0; step < steps; ++step) {
            made->before_forward({step, lr});
            for (std::size_t i = 0; i < kWide; ++i) gradient[i] = (weights[i] - target(i) + tilt) / 2;
            made->after_backward({step, lr});
          }
          model[rank].resize(kWide);
          made->model(model[rank]);
          made->finish();
          result[rank].assign(weights.get(), weights.get() + kWide);
          report[rank] = made->report();
          world.barrier();
        },
        Options{});
  }
  static float target(std::size_t i) { return static_cast<float>(2 * uniform(3, 0, i) - 1); }
};

class CompressedServerWorkers : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, CompressedServerWorkers, ::testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const auto& kind : compress::codecs()) names.push_back(kind.name);
                           return names;
                         }()),
                         [](const auto& codec) { return std::string(codec.param); });

TEST_P(CompressedServerWorkers, AgreeInEveryBit) {
  const Wide bsp("ps-bsp", GetParam(), 5, 0.1), ssp("ps-ssp:s=0", GetParam(), 5, 0.1);
  EXPECT_EQ(bsp.result[0], bsp.result[1]);
  EXPECT_EQ(bsp.model[0], bsp.result[0]);
  EXPECT_EQ(ssp.result[0], bsp.result[0]);
  const auto& report = bsp.report[1];
  const std::uint64_t dense = 11 * Wide::kWide * sizeof(float);  // 5 steps, and the weights it began with
  if (GetParam() == "none") {
    EXPECT_FALSE(report.compressed);
    EXPECT_EQ(report.bytes_sent, dense);
    return;
  }
  ASSERT_TRUE(report.compressed);
  EXPECT_GT(report.compressed->bytes_before, 0u);
  EXPECT_EQ(report.bytes_sent, dense - report.compressed->bytes_before + report.compressed->bytes_after);
  EXPECT_GT(report.compressed->encode_s, 0);
}

TEST(ServerWorker, TrainsCompressedUnderEveryModel) {
  for (const char* strategy : {"ps-bsp", "ps-ssp:s=2", "ps-async"}) {
    const Wide wide(strategy, "int8", 80, 0.1);
    for (std::size_t i = 0; i < Wide::kWide; ++i) {
      ASSERT_NEAR(wide.result[0][i], Wide::target(i), 0.05) << strategy;
    }
    EXPECT_GT(wide.report[0].compressed->error, 0);
    EXPECT_LT(wide.report[0].compressed->error, 0.02);
    EXPECT_GT(wide.report[0].compressed->carried, 0);
  }
}

}  // namespace
}  // namespace trireme::sync::test::server_worker_test
