#include "trireme/mesh/choice/hybrid_step.h"

#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/cluster/profile/example_layers.h"
#include "trireme/cluster/sim/job/simulate.h"

namespace trireme::cluster {
namespace {

TEST(Hybrid, AddsUpWhatIsComputedGatheredAndSummed) {
  const std::vector<mesh::PieceCost> pieces{
      {"conv1", 1, 2, 100, 0, 50}, {"conv2", 3, 4, 300, 0, 80}, {"fc", 5, 6, 9000, 0, 10}};
  const std::vector<mesh::TensorCost> tensor{{true, 60}, {true, 90}, {true, 40, true}};
  const mesh::Machine machine{.latency_s = 0.5, .bytes_per_s = 100};
  const auto step = mesh::hybrid_step(pieces, tensor, 2, machine);
  EXPECT_DOUBLE_EQ(step.gathered_s, 2 * (0.5 + 0.8));               // 80 bytes of the other worker, and back
  EXPECT_DOUBLE_EQ(step.inside_s, 2 * (0.5 + 40 * 2 / 2.0 / 100));  // a ring of two, both workers' samples
  EXPECT_DOUBLE_EQ(step.gradients_s, 2 * (0.5 + 400 / 2.0 / 100));
  EXPECT_DOUBLE_EQ(step.exposed_s, step.gradients_s / 2);  // 6 s of backward hide all but the first piece's
  EXPECT_DOUBLE_EQ(step.step_s, 21 + step.gathered_s + step.inside_s + step.exposed_s);
  EXPECT_DOUBLE_EQ(mesh::hybrid_step(pieces, tensor, 1, machine).step_s, 21);
  EXPECT_THROW(mesh::hybrid_step(pieces, std::vector<mesh::TensorCost>(3), 2, machine), ConfigError);
}

TEST(Hybrid, SendsLessThanReplicasWhereWeightsAreLarge) {
  const std::vector<ExampleLayer> layers{{"conv", 1 << 10, 32, 0.01, 0.02, 1 << 20, 1 << 16},
                                         {"fc", 1 << 22, 2048, 0.01, 0.02, 1 << 16, 1 << 10, true}};
  const auto profile = example_profile("conv-fc", layers, 16);
  const auto cluster = flat_cluster(4, 1e-5, 1e8);
  Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse("allreduce");
  job.steps = 1;
  const double replicas = simulate(cluster, job).step_s;
  job.hybrid = true;
  const auto hybrid = simulate(cluster, job);
  EXPECT_GT(hybrid.step_s, 0.06);
  EXPECT_LT(hybrid.step_s, replicas);
  job.compress = "fp16";
  EXPECT_THROW(simulate(cluster, job), ConfigError);
}

}  // namespace
}  // namespace trireme::cluster
