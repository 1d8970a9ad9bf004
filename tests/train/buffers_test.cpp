// Means of buffers over a group of which some have died.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/train/learner/learner.h"

namespace trireme::train {
namespace {

// What is left of three workers: one, whose sums are of itself.
class LastOfThree : public WorkerGroup {
 public:
  int rank() const override { return 1; }
  int size() const override { return 3; }
  void sum(std::span<double>) override {}
  void start_giving(const Part&) override {}
  std::optional<std::int64_t> take(const Part&) override { return std::nullopt; }
  void stop_giving() override {}
};

TEST(AverageBuffers, IsOverThoseWhoAreLeft) {
  torch::nn::BatchNorm1d norm(4);
  norm->running_mean.fill_(2);
  norm->running_var.fill_(3);
  LastOfThree group;
  average_buffers(*norm, group, nullptr);
  EXPECT_TRUE(norm->running_mean.eq(2).all().item<bool>());
  EXPECT_TRUE(norm->running_var.eq(3).all().item<bool>());
}

}  // namespace
}  // namespace trireme::train
