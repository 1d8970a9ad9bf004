#include "trireme/cluster/sim/learning/cosimulate.h"

#include <gmock/gmock.h>

#include <cmath>

#include "trireme/cluster/sim/learning/small_model.h"

namespace trireme::cluster {
namespace {

constexpr int kWorkers = 3;

// A short trial: what is shown is that all learn, not how well.
Learning learn(const std::string& strategy, const char* codec = "none", int steps = 40) {
  const auto profile = example_profile("tiny");
  Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse(strategy);
  job.compress = codec;
  auto cluster = flat_cluster(kWorkers, 1e-5, 1e10);
  if (job.strategy.kind->name == "hogwild") cluster = host_cluster(kWorkers, {});
  return cosimulate(cluster, job, {.batch = 4, .steps = steps, .patience = 2});
}

TEST(Cosimulate, GradientsAreThoseOfTheLoss) {
  const SmallModel model(1);
  auto weights = model.start();
  std::vector<float> gradient(SmallModel::kCount);
  model.gradient(weights, 0, 0, 64, gradient);
  std::vector<float> again(SmallModel::kCount);
  model.gradient(weights, 0, 0, 64, again);
  EXPECT_EQ(gradient, again);
  double before = model.loss(weights);
  for (int k = 0; k < 40; ++k) {
    model.gradient(weights, 0, k, 64, gradient);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.3f * gradient[i];
  }
  EXPECT_LT(model.loss(weights), 0.9 * before);
}

TEST(Cosimulate, PlainAllReduceIsTheMeasure) {
  const auto learning = learn("allreduce");
  EXPECT_NEAR(learning.efficiency, 1, 0.02);
  EXPECT_NEAR(learn("ps-bsp").efficiency, 1, 0.05);  // the same but for the order of sums
  EXPECT_NEAR(learn("stale-allreduce:s=0").efficiency, 1, 0.05);
}

TEST(Cosimulate, EveryStrategyLearns) {
  for (const auto& kind : sync::strategies()) {
    const auto learning = learn(std::string(kind.name));
    EXPECT_LT(learning.loss, 2.0) << kind.name;
    EXPECT_GE(learning.efficiency, 0) << kind.name;
    EXPECT_LT(learning.efficiency, 4) << kind.name;
  }
}

TEST(Cosimulate, StaleGradientsAreStaleByTheClocks) {
  EXPECT_GT(learn("ps-async").mean_stale, 0.5);
  EXPECT_EQ(learn("ps-bsp").mean_stale, 0);
}

TEST(Cosimulate, CodecsOfEveryRoadLearn) {
  for (const char* codec : {"fp16", "int8", "topk:0.1", "powersgd"}) {
    EXPECT_LT(learn("allreduce", codec).loss, 2.0) << codec;
  }
  EXPECT_LT(learn("ps-async", "topk:0.1").loss, 2.0);
}

TEST(Cosimulate, OneSeedOneResult) {
  for (const char* strategy : {"ps-async", "gossip-adpsgd", "hogwild"}) {
    EXPECT_EQ(learn(strategy).samples, learn(strategy).samples) << strategy;
  }
}

}  // namespace
}  // namespace trireme::cluster
