// A model as flat memory, and back.
#include "trireme/train/learner/flat_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/grad/exchange_options.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/sync/strategies.h"

namespace trireme::train {
namespace {

struct Two : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(3, 2))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(2, 1))};
  torch::Tensor forward(const torch::Tensor& x) { return b(a(x)); }
};

// Takes gradients: the first few steps of post-local SGD average them.
std::unique_ptr<sync::Strategy> taker(Communicator& world) {
  return sync::Choice::parse("post-local-sgd").make({.world = world});
}

TEST(FlatModel, ParametersLieInItOneAfterTheOther) {
  run_threads(1, [](Communicator& world) {
    Two model;
    auto strategy = taker(world);
    auto before = model.a->bias.detach().clone();
    auto x = torch::ones({4, 3});
    {
      FlatModel flat(model, world, *strategy);
      auto [weights, gradient] = flat.replica();
      ASSERT_EQ(weights.size(), 11u);
      ASSERT_EQ(gradient.size(), 11u);
      EXPECT_TRUE(torch::equal(model.a->bias, before));
      weights[6] = 5;  // the first of a.bias
      EXPECT_EQ(model.a->bias[0].item<float>(), 5);

      ExchangeOptions options;
      options.stay.emplace(gradient);
      DataParallel net(model, world, options);
      std::ranges::fill(gradient, -1.0f);
      (model.a(x).sum() + 0 * model.b->weight.sum()).backward();  // b.bias has no gradient
      EXPECT_EQ(gradient[6], 4);                                  // of a.bias: one for each sample
      EXPECT_EQ(gradient[8], 0);
      EXPECT_EQ(gradient[10], 0);
      EXPECT_EQ(net.gradients().ranks(), 1);
      EXPECT_TRUE(model.b->bias.grad().defined());  // others may have one
      gradient[8] = 42;
      EXPECT_EQ(model.b->weight.grad()[0][0].item<float>(), 42);
      flat.clear_gradients();
      EXPECT_EQ(model.b->weight.grad().abs().sum().item<float>(), 0);

      std::vector<float> others(11, 0.5f);
      auto value = model.forward(x).sum().item<float>();
      {
        FlatModel::Instead instead(flat, others);
        EXPECT_EQ(model.a->bias[0].item<float>(), 0.5f);
      }
      EXPECT_EQ(model.forward(x).sum().item<float>(), value);
      before = model.a->weight.detach().clone();
    }
    EXPECT_TRUE(torch::equal(model.a->weight, before));  // its memory is its own again
  });
}

TEST(FlatModel, OtherTypesAreRefusedByName) {
  run_threads(1, [](Communicator& world) {
    Two model;
    model.b->to(torch::kFloat64);
    auto strategy = taker(world);
    try {
      FlatModel flat(model, world, *strategy);
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("'b.weight'"));
    }
  });
}

}  // namespace
}  // namespace trireme::train
