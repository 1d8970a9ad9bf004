// A stage against the whole model run by autograd: outputs, gradients of inputs and of parameters, however it is cut.
#include "trireme/parallel/pipeline/stage.h"

#include <gtest/gtest.h>

namespace trireme::parallel {
namespace {

using torch::nn::Linear;
using torch::nn::ReLU;
using torch::nn::ReLUOptions;
using torch::nn::Sequential;

// Dropout, normalization with running statistics, layers in place.
Sequential example() {
  torch::manual_seed(3);
  Sequential net(Linear(6, 8), ReLU(ReLUOptions(true)), torch::nn::BatchNorm1d(8), nn::Dropout(0.5), Linear(8, 8),
                 ReLU(ReLUOptions(true)), Linear(8, 4));
  net->to(torch::kFloat64);
  return net;
}

struct Seen {
  torch::Tensor output, input_gradient;
  std::vector<torch::Tensor> gradients, buffers;
};

torch::Tensor input_of(int micro_batch) {
  return torch::arange(30, torch::kFloat64).reshape({5, 6}).sin() + 0.1 * micro_batch;
}

Seen seen(Sequential& net, torch::Tensor output, torch::Tensor input_gradient) {
  Seen found{output.detach().clone(), input_gradient.clone(), {}, {}};
  for (auto& parameter : net->parameters()) found.gradients.push_back(parameter.grad().clone());
  for (auto& buffer : net->buffers()) found.buffers.push_back(buffer.clone());
  return found;
}

Seen by_autograd() {
  auto net = example();
  torch::Tensor output, input;
  for (int m = 0; m < 2; ++m) {
    nn::set_random(10 + m);
    input = input_of(m).requires_grad_();
    output = net->forward(input * 1);  // the first layers may work in place
    output.backward(output.detach().cos());
  }
  return seen(net, output, input.grad());
}

void expect_same(const Seen& a, const Seen& b) {
  EXPECT_TRUE(torch::allclose(a.output, b.output, 1e-12, 1e-12));
  EXPECT_TRUE(torch::allclose(a.input_gradient, b.input_gradient, 1e-12, 1e-12));
  for (std::size_t k = 0; k < a.gradients.size(); ++k) {
    EXPECT_TRUE(torch::allclose(a.gradients[k], b.gradients[k], 1e-12, 1e-12)) << k;
  }
  for (std::size_t k = 0; k < a.buffers.size(); ++k) EXPECT_TRUE(torch::allclose(a.buffers[k], b.buffers[k])) << k;
}

TEST(Stage, EqualsAutogradHoweverItIsCut) {
  const auto oracle = by_autograd();
  for (std::size_t segment : {0, 1, 2, 3}) {
    for (bool recompute : {false, true}) {
      for (bool halves : {false, true}) {
        SCOPED_TRACE(testing::Message() << segment << ' ' << recompute << ' ' << halves);
        auto net = example();
        auto chain = nn::chain_of(net);
        Stage stage(*net, chain, 0, chain.size(), {.segment = segment, .recompute = recompute});
        std::vector<torch::Tensor> outputs;
        torch::Tensor input_gradient;
        for (int m = 0; m < 2; ++m) {
          nn::set_random(10 + m);
          outputs.push_back(stage.forward(m, {input_of(m)}).at(0));
          EXPECT_FALSE(outputs.back().requires_grad());
        }
        for (int m = 0; m < 2; ++m) {
          nn::Values gradient{outputs[m].cos()};
          if (halves) {
            input_gradient = stage.backward_inputs(m, gradient).at(0);
            stage.backward_weights(m, m == 1);
          } else {
            input_gradient = stage.backward(m, gradient, m == 1).at(0);
          }
        }
        EXPECT_EQ(stage.micro_batches_kept(), 0u);
        expect_same(seen(net, outputs[1], input_gradient), oracle);
      }
    }
  }
}

// Counts what it hears.
struct Ears : SegmentWatch {
  std::vector<std::string> heard;
  void before_forward(std::size_t k) override { heard.push_back("(F" + std::to_string(k)); }
  void after_forward(std::size_t k) override { heard.push_back("F)" + std::to_string(k)); }
  void before_backward(std::size_t k) override { heard.push_back("(B" + std::to_string(k)); }
  void after_backward(std::size_t k, bool last) override {
    heard.push_back("B)" + std::to_string(k) + (last ? "!" : ""));
  }
};

TEST(Stage, SaysWhichParametersItUses) {
  auto net = example();
  auto chain = nn::chain_of(net);
  Ears ears;
  Stage stage(*net, chain, 0, chain.size(), {.segment = 4, .input_gradients = false});
  stage.set_watch(&ears);
  ASSERT_EQ(stage.segments(), 2u);
  EXPECT_EQ(stage.parameters(1).front().first, "4.weight");
  EXPECT_TRUE(stage.parameters_apart());
  auto output = stage.forward(0, {input_of(0)});
  auto gradient = stage.backward(0, output, true);
  EXPECT_FALSE(gradient.at(0).defined());
  EXPECT_EQ(ears.heard, (std::vector<std::string>{"(F0", "F)0", "(F1", "F)1", "(B1", "B)1!", "(B0", "B)0!"}));
}

}  // namespace
}  // namespace trireme::parallel
