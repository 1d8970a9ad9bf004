#include "trireme/nn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/nn/locally_connected.h"

namespace trireme::nn {
namespace {

// Both from the same seed: parameters, results and what is left of the random numbers are equal bit by bit.
template <class Ours, class Theirs>
void expect_same(Ours make_ours, Theirs make_theirs, const torch::Tensor& input) {
  torch::manual_seed(5);
  auto ours = make_ours();
  auto next = torch::rand({3});
  torch::manual_seed(5);
  auto theirs = make_theirs();
  EXPECT_TRUE(torch::equal(next, torch::rand({3})));
  const auto expected = theirs->named_parameters(), found = ours->named_parameters();
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& item : expected) EXPECT_TRUE(torch::equal(item.value(), found[item.key()])) << item.key();
  EXPECT_EQ(ours->named_buffers().keys(), theirs->named_buffers().keys());
  EXPECT_TRUE(torch::equal(ours->forward(input), theirs->forward(input)));
}

TEST(Layers, AreLibTorchs) {
  namespace them = torch::nn;
  expect_same([] { return Linear(5, 3); }, [] { return them::Linear(5, 3); }, torch::rand({2, 5}));
  auto conv = them::Conv2dOptions(2, 4, 3).stride(2).padding(1).bias(false);
  expect_same([&] { return Conv2d(conv); }, [&] { return them::Conv2d(conv); }, torch::rand({2, 2, 7, 7}));
  expect_same([] { return BatchNorm2d(3); }, [] { return them::BatchNorm2d(3); }, torch::rand({2, 3, 4, 4}));
  expect_same([] { return Embedding(7, 3); }, [] { return them::Embedding(7, 3); }, torch::tensor({1, 6, 0}));
  auto pool = them::MaxPool2dOptions(2);
  expect_same([&] { return MaxPool2d(pool); }, [&] { return them::MaxPool2d(pool); }, torch::rand({2, 3, 4, 4}));
  expect_same([] { return Flatten(); }, [] { return them::Flatten(); }, torch::rand({2, 3, 4, 4}));
}

TEST(Layers, AreFoundAsLibTorchsInASequential) {
  torch::nn::Sequential model(Linear(4, 3), torch::nn::ReLU(), Linear(3, 2));
  EXPECT_NE(model->ptr(0)->as<torch::nn::Linear>(), nullptr);
  EXPECT_EQ(model->forward(torch::rand({2, 4})).size(1), 2);
}

TEST(Layers, ComputeByTheirSplit) {
  Linear layer(2, 2);
  layer->set_split(std::make_shared<Split>(Split{[&](const torch::Tensor& x) { return layer->plain(x) + 1; }}));
  auto input = torch::rand({1, 2});
  EXPECT_TRUE(torch::equal(layer->forward(input), layer->plain(input) + 1));
  layer->set_split(nullptr);
  EXPECT_TRUE(torch::equal(layer->forward(input), layer->plain(input)));
}

TEST(Layers, AnEmbeddingScores) {
  Embedding table(5, 3);
  auto x = torch::rand({2, 3}), bias = torch::rand({5});
  EXPECT_TRUE(torch::equal(table->scores(x), torch::linear(x, table->weight)));
  EXPECT_TRUE(torch::equal(table->scores(x, bias), torch::linear(x, table->weight, bias)));
}

// By the definition, one output at a time.
torch::Tensor connected(LocallyConnected2dImpl& layer, const torch::Tensor& input) {
  const auto& options = layer.options;
  auto [ph, pw] = options.padding;
  auto padded = torch::constant_pad_nd(input, {pw, pw, ph, ph});
  const auto height = layer.weight.size(0), width = layer.weight.size(1);
  auto result = torch::zeros({input.size(0), options.out, height, width});
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      auto window = padded.narrow(2, y * options.stride[0], options.kernel[0])
                        .narrow(3, x * options.stride[1], options.kernel[1])
                        .reshape({input.size(0), -1});
      result.select(3, x).select(2, y).copy_(torch::matmul(window, layer.weight[y][x].t()));
    }
  }
  return options.bias ? result + layer.bias : result;
}

TEST(Layers, LocallyConnectedHasAKernelForEveryPlace) {
  torch::NoGradGuard no_grad;
  for (bool bias : {true, false}) {
    LocallyConnected2d layer(LocallyConnected2dOptions{2, 3, {7, 6}, {3, 2}, {2, 1}, {1, 0}, bias});
    auto input = torch::rand({4, 2, 7, 6});
    auto output = layer->forward(input);
    EXPECT_EQ(output.sizes(), (std::vector<std::int64_t>{4, 3, 4, 5}));
    EXPECT_TRUE(torch::allclose(output, connected(*layer, input), 1e-5, 1e-6));
  }
}

// With equal kernels everywhere it is a convolution, and so is its gradient.
TEST(Layers, LocallyConnectedGeneralizesConvolution) {
  LocallyConnected2d layer(LocallyConnected2dOptions{2, 3, {6, 6}, {3, 3}, {1, 1}, {1, 1}, false});
  auto kernel = torch::rand({3, 2, 3, 3}, torch::requires_grad());
  {
    torch::NoGradGuard no_grad;
    layer->weight.copy_(kernel.flatten(1).expand_as(layer->weight));
  }
  auto input = torch::rand({2, 2, 6, 6}, torch::requires_grad()), same = input.detach().clone().requires_grad_();
  auto output = layer->forward(input), expected = torch::conv2d(same, kernel, {}, 1, 1);
  EXPECT_TRUE(torch::allclose(output, expected, 1e-5, 1e-5));
  auto direction = torch::rand_like(output);
  output.backward(direction);
  expected.backward(direction);
  EXPECT_TRUE(torch::allclose(input.grad(), same.grad(), 1e-5, 1e-5));
  auto summed = layer->weight.grad().sum(std::vector<std::int64_t>{0, 1}).view_as(kernel);
  EXPECT_TRUE(torch::allclose(summed, kernel.grad(), 1e-4, 1e-4));
}

TEST(Layers, LocallyConnectedRefusesAKernelThatDoesNotFit) {
  EXPECT_THROW(LocallyConnected2d(LocallyConnected2dOptions{1, 1, {4, 4}, {5, 3}}), ConfigError);
}

}  // namespace
}  // namespace trireme::nn
