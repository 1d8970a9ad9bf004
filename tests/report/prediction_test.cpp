// What a run says of its own steps.
#include "trireme/report/prediction/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trireme/cluster/sim/collective_time.h"
#include "trireme/train/group/world_group.h"
#include "trireme/train/learner/learner.h"
#include "trireme/train/learner/strategy.h"

namespace trireme::train {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Steps of 10 ms that are predicted to take 8.
struct Told {
  explicit Told(std::optional<double> ms) : world(world_of_one()), group(world) {
    Prediction::Told told;
    if (ms) told.step.emplace().step_ms = *ms;
    if (!ms) told.why_not = "nobody knows";
    torch::nn::Linear model(2, 2);
    strategy = make_strategy(config, *model, world, nullptr, 1);
    prediction.emplace(config, world, group, *strategy, 24, 100, told);
    for (int k = 0; k < 100; ++k) {
      EXPECT_FALSE(prediction->due());
      StepOutcome outcome;
      outcome.forward_s = 0.004;
      outcome.backward_s = 0.003;
      prediction->step(outcome, 0.002, k < 10 ? 0.5 : 0.010);
    }
  }
  Config config;
  Communicator world;
  WorldGroup group;
  std::unique_ptr<sync::Strategy> strategy;
  std::optional<Prediction> prediction;
};

TEST(Prediction, ComparesLaterSteps) {
  Told run(8);
  EXPECT_EQ(run.prediction->line(), "step: predicted 8 ms, measured 10 ms (+25.0 %)");
  nlohmann::json summary;
  run.prediction->add_to(summary);
  EXPECT_EQ(summary["predicted"]["step_ms"], 8);
  EXPECT_NEAR(summary["measured"]["breakdown_ms"]["other"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(summary["measured"]["step_ms"].get<double>(), 10, 1e-9);
}

TEST(Prediction, SaysWhyThereIsNone) {
  Told run(std::nullopt);
  EXPECT_THAT(run.prediction->line(), StartsWith("step: measured 10 ms, not predicted (nobody knows"));
  nlohmann::json summary;
  run.prediction->add_to(summary);
  EXPECT_FALSE(summary.contains("predicted"));
}

TEST(Prediction, ClusterFitsWhatWasMeasured) {
  Config config;
  config.workers = 4;
  auto real = cluster_here(config, "shm", 4);
  EXPECT_EQ(real.workers(), 4);
  EXPECT_TRUE(real.shares_memory());
  auto& inside = real.nodes.front().inside;
  inside.corrections = {};
  auto guess = real;
  inside.sync *= 3;
  inside.memory.slope *= 2;
  for (auto& point : inside.memory.points) point.seconds *= 2;
  inside.gamma *= 2;
  inside.copy *= 2;
  const cluster::Network network(real);
  MeasuredExchange measured;
  auto seconds = [](const cluster::Network& on, std::size_t count) {
    const auto& algorithm = cluster::pick_algorithm(on, Collective::all_reduce, count, 4, 4);
    return cluster::play(on, algorithm, {.what = Collective::all_reduce, .ranks = 4, .count = count}, 4);
  };
  for (std::size_t bytes = 256; bytes <= 4 << 20; bytes *= 8) {
    measured.all_reduce.emplace_back(static_cast<double>(bytes), seconds(network, bytes / 4));
  }
  fit(guess, "auto", measured);
  const cluster::Network fitted(guess);
  for (std::size_t bytes : {1000, 40'000, 3'000'000}) {
    EXPECT_NEAR(seconds(fitted, bytes / 4) / seconds(network, bytes / 4), 1, 0.1) << bytes;
  }
}

TEST(Prediction, HostsThatAreEmulated) {
  Config config;
  config.workers = 4;
  config.hosts = "ns:4";
  config.bandwidth = "100mbit";
  config.latency = "1ms";
  const auto cluster = cluster_here(config, "tcp", 4);
  EXPECT_EQ(cluster.node_count(), 4);
  EXPECT_GE(cluster.links.front().message.start, 1e-3);
  EXPECT_NEAR(cluster.links.front().message.slope, 8e-8 / 0.956, 1e-10);  // frames have headers
}

TEST(Prediction, StragglersOfASimulation) {
  auto slow = straggler_of(Straggle("rank=1,factor=3"), 0.1, false);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->factor, 3);
  EXPECT_FALSE(straggler_of(Straggle("rank=1,factor=3"), 0.1, true));
  auto pauses = straggler_of(Straggle("random,p=0.25,ms=50"), 0.1, true);
  ASSERT_TRUE(pauses);
  double mean = 0;
  for (double ratio : pauses->ratios) mean += ratio / static_cast<double>(pauses->ratios.size());
  EXPECT_NEAR(mean, 1 + 0.25 * 0.5, 1e-9);
  EXPECT_FALSE(straggler_of(Straggle(), 0.1, true));
}

}  // namespace
}  // namespace trireme::train
