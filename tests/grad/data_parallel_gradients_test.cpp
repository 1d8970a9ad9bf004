// Gradients that are missing, shared, clipped or broken, and models that differ.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>

#include "tests/grad/models.h"
#include "trireme/base/error.h"
#include "trireme/grad/data_parallel.h"

namespace trireme {
namespace {

using namespace trireme::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Branches : torch::nn::Module {
  Branches() {
    first = register_module("first", torch::nn::Linear(4, 4));
    left = register_module("left", torch::nn::Linear(4, 2));
    right = register_module("right", torch::nn::Linear(4, 2));
    never = register_module("never", torch::nn::Linear(4, 2));
    frozen = register_module("frozen", torch::nn::Linear(4, 4));
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  }
  torch::Tensor forward(const torch::Tensor& x, bool go_left) {
    auto middle = first->forward(frozen->forward(x));
    return go_left ? left->forward(middle) : right->forward(middle);
  }
  torch::nn::Linear first{nullptr}, left{nullptr}, right{nullptr}, never{nullptr}, frozen{nullptr};
};

TEST(DataParallelGradients, UnusedParametersAreZerosWhereOthersUseThemAndAreNamed) {
  run_threads(2, [&](Communicator& world) {
    Branches net;
    auto parallel = data_parallel(net, world);
    auto x = torch::ones({3, 4});
    for (int step = 0; step < 3; ++step) {
      parallel.zero_grad();
      net.forward(x, world.rank() == 0).sum().backward();
      ASSERT_TRUE(net.left->weight.grad().defined());
      ASSERT_TRUE(net.right->weight.grad().defined());
      EXPECT_FALSE(net.never->weight.grad().defined());
      EXPECT_FALSE(net.frozen->weight.grad().defined());
      // d(sum)/d(bias) is 3 on the rank that went this way, 0 on the other.
      EXPECT_EQ(net.left->bias.grad()[0].item<float>(), 1.5f);
      EXPECT_EQ(net.right->bias.grad()[1].item<float>(), 1.5f);
      EXPECT_THAT(parallel.unused(), ElementsAre("never.weight", "never.bias"));
    }
  });
}

struct Tied : torch::nn::Module {
  Tied() {
    in = register_parameter("in", torch::full({4, 4}, 0.5));
    out = register_parameter("out", in);
  }
  torch::Tensor in, out;
};

TEST(DataParallelGradients, SharedParametersAreExchangedOnce) {
  run_threads(2, [&](Communicator& world) {
    Tied net;
    auto parallel = data_parallel(net, world);
    auto x = torch::full({1, 4}, world.rank() + 1.f);
    (x.matmul(net.in).matmul(net.out)).sum().backward();
    auto alone = torch::full({4, 4}, 0.5).requires_grad_();
    for (float value : {1.f, 2.f}) (torch::full({1, 4}, value).matmul(alone).matmul(alone)).sum().backward();
    EXPECT_LT((net.in.grad() - alone.grad() / 2).abs().max().item<float>(), 1e-5);
  });
}

TEST(DataParallelGradients, ClippingSeesAllGradientsTogether) {
  auto all = examples({8, 8}, 4);
  auto alone = small_net();
  loss_on(alone, all).backward();
  double expected = torch::nn::utils::clip_grad_norm_(alone->parameters(), 0.01);
  run_threads(2, [&](Communicator& world) {
    auto net = small_net();
    auto parallel = data_parallel(net, world);
    loss_on(net, part(all, 4 * world.rank(), 4 * world.rank() + 4)).backward();
    EXPECT_NEAR(parallel.clip_grad_norm(0.01), expected, 1e-6);
    EXPECT_NEAR(parallel.grad_norm(), 0.01, 1e-6);
    expect_close(gradients(net), gradients(alone), 1e-6, "clipped");
  });
}

TEST(DataParallelGradients, BadGradientsAreNamedOnEveryRank) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    run_threads(3, [&](Communicator& world) {
      auto net = small_net();
      DataParallelOptions options;
      options.check_finite = true;
      auto parallel = data_parallel(net, world, options);
      auto batch = examples({4, 8}, 4);
      loss_on(net, batch).backward();
      EXPECT_TRUE(parallel.bad_gradients().empty());
      parallel.zero_grad();
      if (world.rank() == 1) batch.x[0][0] = bad;
      loss_on(net, batch).backward();
      ASSERT_EQ(parallel.bad_gradients().size(), 1u);
      EXPECT_EQ(parallel.bad_gradients()[0].rank, 1);
      EXPECT_FALSE(parallel.bad_gradients()[0].parameter.empty());
    });
  }
}

TEST(DataParallelGradients, ModelsThatDifferAreNamed) {
  std::vector<std::string> errors(3);
  run_threads(3, [&](Communicator& world) {
    try {
      auto net = small_net(world.rank() == 2 ? 16 : 32);
      auto parallel = data_parallel(net, world);
    } catch (const ConfigError& error) {
      errors[world.rank()] = error.what();
    }
  });
  for (const auto& error : errors) EXPECT_THAT(error, AllOf(HasSubstr("models differ"), HasSubstr("of rank 2")));
}

}  // namespace
}  // namespace trireme
