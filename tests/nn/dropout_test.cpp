#include "trireme/nn/dropout.h"

#include <gtest/gtest.h>

#include <thread>

namespace trireme::nn {
namespace {

TEST(DropoutLayer, DropsItsShareAndKeepsTheMean) {
  Dropout dropout(0.25);
  set_random(3);
  auto output = dropout->forward(torch::ones({100'000}));
  double dropped = (output == 0).to(torch::kFloat).mean().item<double>();
  EXPECT_NEAR(dropped, 0.25, 0.01);
  EXPECT_NEAR(output.mean().item<double>(), 1, 0.01);
  EXPECT_FLOAT_EQ(output.max().item<float>(), 1 / 0.75f);
}

TEST(DropoutLayer, IsAFunctionOfTheSeed) {
  Dropout dropout(0.5);
  auto input = torch::ones({1000});
  set_random(5);
  auto first = dropout->forward(input), second = dropout->forward(input);
  set_random(5);
  EXPECT_TRUE(torch::equal(first, dropout->forward(input)));
  EXPECT_TRUE(torch::equal(second, dropout->forward(input)));
  EXPECT_FALSE(torch::equal(first, second));
  set_random(6);
  EXPECT_FALSE(torch::equal(first, dropout->forward(input)));
}

// Another thread, and whoever uses the default generator, draw from others.
TEST(DropoutLayer, BelongsToItsThread) {
  auto input = torch::ones({1000});
  auto run = [&](bool disturbed) {
    Dropout dropout(0.5);
    set_random(8);
    auto first = dropout->forward(input);
    if (disturbed) {
      torch::rand({100});
      std::jthread([&] {
        set_random(1);
        Dropout(0.5)->forward(input);
      }).join();
    }
    return torch::cat({first, dropout->forward(input)});
  };
  auto alone = run(false);
  EXPECT_TRUE(torch::equal(alone, run(true)));
  torch::Tensor elsewhere;
  std::jthread([&] { elsewhere = run(false); }).join();
  EXPECT_TRUE(torch::equal(alone, elsewhere));
}

TEST(DropoutLayer, RestsInEvaluation) {
  Dropout dropout(0.5);
  dropout->eval();
  auto input = torch::rand({50});
  EXPECT_TRUE(torch::equal(dropout->forward(input), input));
}

TEST(DropoutLayer, PassesTheGradientOfWhatItKept) {
  Dropout dropout(0.5);
  auto input = torch::ones({1000}, torch::requires_grad());
  auto output = dropout->forward(input);
  output.sum().backward();
  EXPECT_TRUE(torch::equal(input.grad(), output.detach()));
}

}  // namespace
}  // namespace trireme::nn
