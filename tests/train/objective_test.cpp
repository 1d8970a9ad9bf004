// Losses and metrics against LibTorch and numbers computed by hand.
#include "trireme/train/objective/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/train/objective/loss_choice.h"

namespace trireme::train {
namespace {

using data::Targets;
using ::testing::HasSubstr;
using torch::Tensor;

Tensor loss(std::string_view text, const Tensor& output, const Tensor& target) {
  const auto choice = LossChoice::parse(text);
  return (*choice.kind->make(choice.values))(output, target);
}

double metric(std::string_view name, const Tensor& output, const Tensor& target, Targets targets) {
  const auto& kind = *chosen_metrics(name).front();
  const auto made = kind.make(targets, output.size(-1));
  std::vector<double> sums(made->sums());
  // In two batches: sums are of all of them.
  const auto half = output.size(0) / 2;
  made->add(output.narrow(0, 0, half), target.narrow(0, 0, half), sums);
  made->add(output.narrow(0, half, output.size(0) - half), target.narrow(0, half, output.size(0) - half), sums);
  return made->value(sums);
}

template <typename Use>
std::string refusal(const Use& use) {
  try {
    use();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Losses, AreWhatLibTorchComputes) {
  torch::manual_seed(1);
  const auto scores = torch::randn({6, 4}), classes = torch::tensor({0, 3, 1, 1, 2, 0}, torch::kLong);
  const auto log_p = torch::log_softmax(scores, 1);
  const auto hit = -log_p.gather(1, classes.unsqueeze(1)).mean(), even = -log_p.mean();
  EXPECT_TRUE(torch::allclose(loss("cross-entropy", scores, classes), hit));
  EXPECT_TRUE(torch::allclose(loss("cross-entropy:smoothing=0.1", scores, classes), 0.9 * hit + 0.1 * even));
  EXPECT_TRUE(torch::allclose(loss("cross-entropy", scores.view({2, 3, 4}), classes.view({2, 3})), hit)) << "text";

  const auto outputs = torch::tensor({{1.0f, -2.0f}, {0.5f, 3.0f}}),
             values = torch::tensor({{0.0f, 0.0f}, {1.0f, 1.0f}});
  EXPECT_FLOAT_EQ(loss("mse", outputs, values).item<float>(), (1 + 4 + 0.25f + 4) / 4);
  EXPECT_FLOAT_EQ(loss("mae", outputs, values).item<float>(), (1 + 2 + 0.5f + 2) / 4);
  const auto bce = [](double x, double y) { return y * std::log1p(std::exp(-x)) + (1 - y) * std::log1p(std::exp(x)); };
  EXPECT_NEAR(loss("bce", outputs, values).item<double>(), (bce(1, 0) + bce(-2, 0) + bce(0.5, 1) + bce(3, 1)) / 4,
              1e-6);
}

TEST(Losses, OutputsArePairedWithTargetsAndNeverBroadcast) {
  const auto target = torch::tensor({{1.0f}, {2.0f}, {3.0f}});
  EXPECT_EQ(loss("mse", torch::tensor({1.0f, 2.0f, 3.0f}), target).item<float>(), 0);
  EXPECT_THAT(refusal([&] { loss("mse", torch::zeros({3, 2}), target); }), HasSubstr("[3, 2] for targets of [3, 1]"));
}

TEST(Metrics, OfClasses) {
  const auto classes = torch::tensor({0, 1, 2, 3, 4, 5}, torch::kLong);
  auto scores = torch::eye(6) * 2;
  scores[0][3] = 9;                                  // told wrong, and second
  for (int k = 0; k < 5; ++k) scores[5][k] = 5 + k;  // told wrong, and last
  EXPECT_DOUBLE_EQ(metric("accuracy", scores, classes, Targets::classes), 4.0 / 6);
  EXPECT_DOUBLE_EQ(metric("top-1", scores, classes, Targets::classes), 4.0 / 6);
  EXPECT_DOUBLE_EQ(metric("error", scores, classes, Targets::classes), 1 - 4.0 / 6);
  EXPECT_DOUBLE_EQ(metric("top-5", scores, classes, Targets::classes), 5.0 / 6);
  EXPECT_NEAR(metric("perplexity", scores, classes, Targets::classes),
              std::exp(torch::cross_entropy_loss(scores, classes).item<double>()), 1e-4);
  EXPECT_THAT(refusal([] { (void)chosen_metrics("top-5").front()->make(Targets::classes, 5); }),
              HasSubstr("leave it out"));
}

TEST(Metrics, OfNumbers) {
  const auto outputs = torch::tensor({{1.0f, 0.0f}, {2.0f, 5.0f}, {4.0f, 1.0f}}),
             values = torch::tensor({{0.0f, 1.0f}, {2.0f, 3.0f}, {4.0f, 2.0f}});
  EXPECT_DOUBLE_EQ(metric("mse", outputs, values, Targets::values), (1 + 1 + 0 + 4 + 0 + 1) / 6.0);
  EXPECT_DOUBLE_EQ(metric("mae", outputs, values, Targets::values), (1 + 1 + 0 + 2 + 0 + 1) / 6.0);
  // Means 2 and 2: sums of squares about them are 8 and 2.
  EXPECT_NEAR(metric("r2", outputs, values, Targets::values), ((1 - 1 / 8.0) + (1 - 6 / 2.0)) / 2, 1e-12);
  const auto logits = torch::tensor({{1.0f, -1.0f}, {0.5f, 3.0f}}), ones = torch::tensor({{1.0f, 1.0f}, {0.0f, 1.0f}});
  EXPECT_DOUBLE_EQ(metric("accuracy", logits, ones, Targets::zero_one), 0.5);
  EXPECT_DOUBLE_EQ(metric("error", logits, ones, Targets::zero_one), 0.5);
}

TEST(Metrics, KnowWhichIsBetter) {
  const auto& accuracy = *chosen_metrics("accuracy").front();
  const auto& mse = *chosen_metrics("mse").front();
  EXPECT_TRUE(accuracy.better(0.9, 0.8) && accuracy.reaches(0.9, 0.9) && !accuracy.reaches(0.8, 0.9));
  EXPECT_TRUE(mse.better(0.1, 0.2) && mse.reaches(0.1, 0.1) && !mse.reaches(0.2, 0.1));
  EXPECT_FALSE(mse.better(std::nan(""), 0.2));
}

TEST(Objectives, AreChosenByTheData) {
  const data::Shape classes{{4}, 10}, text{{8}, 20, true}, values{{4}, 0, false, 3};
  EXPECT_EQ(make_objective("auto", "auto", classes, "d").loss_text, "cross-entropy:smoothing=0");
  EXPECT_EQ(make_objective("auto", "auto", text, "d").first().name, "accuracy");
  const auto regression = make_objective("auto", "auto", values, "d");
  EXPECT_EQ(regression.loss_text, "mse");
  EXPECT_EQ(regression.first().key, "mse");
  EXPECT_EQ(make_objective("bce", "auto", values, "d").first().key, "accuracy");
  // Files have the accuracy of classes whatever is asked for.
  const auto five = make_objective("auto", "top-5", classes, "d");
  ASSERT_EQ(five.metrics.size(), 2u);
  EXPECT_FALSE(five.metrics[1].asked);
  EXPECT_EQ(make_objective("auto", "r2", values, "d").while_training(), nullptr);
}

TEST(Objectives, SayWhatDoesNotGoTogether) {
  const data::Shape classes{{4}, 10}, values{{4}, 0, false, 3};
  const auto refused = [](std::string_view loss, std::string_view metric, const data::Shape& shape) {
    return refusal([&] { (void)make_objective(loss, metric, shape, "table"); });
  };
  EXPECT_THAT(refused("mse", "auto", classes), HasSubstr("--loss mse: table has classes"));
  EXPECT_THAT(refused("cross-entropy", "auto", values), HasSubstr("table has numbers to predict"));
  EXPECT_THAT(refused("auto", "accuracy", values), HasSubstr("choose mse, mae or r2"));
  EXPECT_THAT(refused("hinge", "auto", classes), HasSubstr("there is no loss 'hinge'; choose cross-entropy, mse"));
  EXPECT_THAT(refused("auto", "auc", classes), HasSubstr("there is no metric 'auc'; choose accuracy"));
  EXPECT_THAT(refused("cross-entropy:smoothing=2", "auto", classes), HasSubstr("smoothing=2"));
  EXPECT_THAT(refused("auto", "top-1,accuracy", classes), HasSubstr("given twice"));
  EXPECT_THAT(refusal([] { check_objective("mse", "accuracy", 0); }), HasSubstr("choose mse, mae or r2"));
  EXPECT_THAT(refusal([] { check_objective("auto", "auto", 85); }), HasSubstr("is not a share"));
  check_objective("mse", "auto", 85);
}

TEST(Objectives, TakeWhatAProgramAdds) {
  struct Cubed final : Loss {
    Tensor operator()(const Tensor& output, const Tensor& target) const override {
      return (as_target(output, target) - target).abs().pow(3).mean();
    }
  };
  add_loss({.name = "cubed",
            .summary = "mean cubed error",
            .settings = {},
            .targets = Targets::values,
            .metric = "mse",
            .make = [](const Values&) { return std::make_shared<Cubed>(); }});
  const auto objective = make_objective("cubed", "auto", {{4}, 0, false, 1}, "d");
  EXPECT_EQ((*objective.loss)(torch::full({2, 1}, 2.0), torch::zeros({2, 1})).item<double>(), 8);
  EXPECT_THROW(add_loss({.name = "cubed"}), ConfigError);
}

}  // namespace
}  // namespace trireme::train
