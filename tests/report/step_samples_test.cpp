// From times of steps to a profile, and gradients compared.
#include "trireme/report/profile/step_samples.h"

#include <gtest/gtest.h>

#include "trireme/report/profile/gradient_noise.h"

namespace trireme::train {
namespace {

TEST(StepSamples, MakeAProfile) {
  StepSamples samples;
  for (double slow : {1.0, 1.0, 2.0}) samples.add({slow * 0.010, slow * 0.020, slow * 0.005, 0.001});
  cluster::Profile profile;
  samples.fill(profile, {{"b", 10, 1, 0.0}, {"a", 60, 6, 0.015}});
  EXPECT_DOUBLE_EQ(profile.forward_s.p50, 0.010);
  EXPECT_DOUBLE_EQ(profile.step_s.p50, 0.036);
  EXPECT_DOUBLE_EQ(samples.typical_s(), 0.035);
  EXPECT_EQ(profile.residuals, (std::vector<double>{1, 1, 2}));
  ASSERT_EQ(profile.gradients.size(), 2u);
  // The last gradient is ready when backward ends.
  EXPECT_DOUBLE_EQ(profile.gradients[0].ready_s.p50, 0.005);
  EXPECT_DOUBLE_EQ(profile.gradients[1].ready_s.p50, 0.020);
  EXPECT_EQ(profile.gradient_bytes(), 280u);
  EXPECT_DOUBLE_EQ(profile.update_s_per_byte, 0.005 / 280);
  EXPECT_EQ(profile.gradients[1].rows, 6u);
}

TEST(StepSamples, NoiseWithoutBias) {
  // Gradients of samples are 3 + N(0, 2²) in each of 50 dimensions: |G|² = 450, tr Σ = 200.
  torch::manual_seed(1);
  auto weight = torch::zeros({50}, torch::requires_grad());
  NoiseEstimate estimate;
  constexpr int kPieces = 4, kSamples = 8;
  for (int step = 0; step < 200; ++step) {
    auto norms = norms_of({weight}, kPieces, [&](int) {
      weight.mutable_grad() = (3 + 2 * torch::randn({kSamples, 50})).mean(0);
      return 0.5;
    });
    EXPECT_NEAR(norms.loss, 0.5, 1e-12);
    EXPECT_NEAR(norms.large_square, weight.grad().square().sum().item<double>(), 1e-2);
    estimate.add(kSamples, norms.small_square, kPieces * kSamples, norms.large_square, norms.loss);
  }
  const auto noise = estimate.result();
  EXPECT_NEAR(noise.gradient_square, 450, 5);
  EXPECT_NEAR(noise.trace, 200, 20);
  EXPECT_NEAR(noise.scale(), 200.0 / 450, 0.05);
  EXPECT_EQ(noise.batch, kPieces * kSamples);
  EXPECT_EQ(NoiseEstimate().result(), cluster::NoiseProfile{});
}

}  // namespace
}  // namespace trireme::train
