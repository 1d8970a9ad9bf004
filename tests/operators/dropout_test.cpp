#include "trireme/operators/dropout.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "trireme/nn/dropout.h"
#include "trireme/operators/optimize.h"

namespace trireme::operators {
namespace dropout_test {

using torch::Tensor;

// Ours are taken while some model is optimized.
struct Optimized {
  torch::nn::Linear layer{2, 2};
  Optimized() { optimize(*layer); }
  ~Optimized() { optimize(*layer, {.operators = Operators::libtorch}); }
};

constexpr double kShare = 0.3;

// Contiguous, and dense in another order of its dimensions.
std::vector<Tensor> layouts() {
  return {torch::randn({7, 5, 33}), torch::randn({5, 7, 33}).transpose(0, 1), torch::randn({40'000})};
}

TEST(DropoutOperator, ScalesWhatItKeepsForwardAndBackward) {
  const Optimized optimized;
  for (const Tensor& values : layouts()) {
    Tensor x = values.detach().requires_grad_();
    ASSERT_TRUE(takes_dropout(x, kShare));
    const Tensor y = seeded_dropout(x, kShare, 9), kept = (y != 0).to(torch::kFloat32) / (1 - kShare);
    EXPECT_TRUE(torch::allclose(y, values * kept));
    EXPECT_NEAR((y == 0).to(torch::kFloat32).mean().item<double>(), kShare,
                3 / std::sqrt(static_cast<double>(values.numel())));
    EXPECT_EQ(y.strides(), x.strides());
    EXPECT_TRUE(torch::equal(y, seeded_dropout(x, kShare, 9)));
    EXPECT_FALSE(torch::equal(y, seeded_dropout(x, kShare, 10)));
    const Tensor g = torch::randn(x.sizes());
    y.backward(g);
    EXPECT_TRUE(torch::allclose(x.grad(), g * kept));
  }
}

TEST(DropoutOperator, AddsAResidual) {
  const Optimized optimized;
  for (const Tensor& values : layouts()) {
    Tensor x = values.detach().requires_grad_(), residual = torch::randn(values.sizes()).requires_grad_();
    const Tensor y = seeded_dropout_added(x, residual, kShare, 4), alone = seeded_dropout(x.detach(), kShare, 4);
    EXPECT_TRUE(torch::allclose(y, residual + alone, 1e-5, 1e-6));
    const Tensor g = torch::randn(x.sizes());
    y.backward(g);
    EXPECT_TRUE(torch::equal(residual.grad(), g));
    EXPECT_TRUE(torch::allclose(x.grad(), g * (alone != 0).to(torch::kFloat32) / (1 - kShare)));
  }
}

TEST(DropoutOperator, CanBeDifferentiatedTwice) {
  const Optimized optimized;
  Tensor x = torch::randn({50}).requires_grad_(), factor = torch::randn({50}).requires_grad_();
  const Tensor y = seeded_dropout(x, kShare, 2);
  const Tensor dx = torch::autograd::grad({(y * factor).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  const Tensor again = torch::autograd::grad({dx.sum()}, {factor})[0];
  EXPECT_TRUE(torch::allclose(again, (y != 0).to(torch::kFloat32) / (1 - kShare)));
}

// The layer draws a seed; a part of a split layer drops what the whole would.
TEST(DropoutOperator, LayerAndItsParts) {
  const Optimized optimized;
  nn::Dropout layer(kShare);
  const Tensor x = torch::ones({6, 20}), residual = torch::randn({6, 20});
  nn::set_random(3);
  const Tensor whole = layer->forward(x);
  nn::set_random(3);
  EXPECT_TRUE(torch::equal(layer->part(x.narrow(1, 5, 10), 1, 5, 20), whole.narrow(1, 5, 10)));
  nn::set_random(3);
  EXPECT_TRUE(torch::allclose(layer->added(residual, x), residual + whole, 1e-5, 1e-6));
  layer->eval();
  EXPECT_TRUE(torch::equal(layer->added(residual, x), residual + x));
}

TEST(DropoutOperator, OthersAreLibTorchs) {
  EXPECT_FALSE(takes_dropout(torch::ones({3}), kShare)) << "nothing is optimized";
  const Optimized optimized;
  EXPECT_FALSE(takes_dropout(torch::ones({3}, torch::kFloat64), kShare));
  EXPECT_FALSE(takes_dropout(torch::ones({0}), kShare));
  EXPECT_FALSE(takes_dropout(torch::ones({4, 4}).slice(1, 0, 2), kShare));
  EXPECT_FALSE(takes_dropout(torch::ones({3}), 1.0));
}

}  // namespace dropout_test
}  // namespace trireme::operators
