// Optimized models against LibTorch's own operators.
#include "trireme/operators/optimize.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "trireme/models/model.h"
#include "trireme/operators/pooling.h"

namespace trireme::operators {
namespace optimize_test {

using torch::Tensor;

struct Case {
  const char* model;
  models::Shape shape;
  std::int64_t batch;
  models::Arguments arguments = {};
};

const Case kCases[] = {
    {"lenet", {{1, 28, 28}, 10}, 5},
    {"resnet18", {{3, 32, 32}, 10}, 4, {{"width", "16"}}},
    {"resnet18", {{3, 72, 72}, 10}, 2, {{"width", "8"}}},
    {"resnet32", {{3, 32, 32}, 10}, 3},
    {"resnet50", {{3, 32, 32}, 10}, 2, {{"width", "8"}}},
    {"vgg11", {{3, 32, 32}, 10}, 2, {{"dropout", "0"}}},
    {"vgg11", {{3, 32, 32}, 10}, 2, {{"dropout", "0"}, {"bn", "true"}}},
    {"alexnet-small", {{3, 32, 32}, 10}, 2, {{"dropout", "0"}}},
    {"local-cnn", {{1, 28, 28}, 10}, 2},
    {"mlp", {{1, 28, 28}, 10}, 4},
    {"lstm-lm", {{7}, 50, true}, 3, {{"width", "24"}, {"dropout", "0"}}},
    {"lstm-lm", {{5}, 50, true}, 2, {{"width", "17"}, {"dropout", "0"}, {"tied", "false"}}},
    {"gpt-small", {{9}, 50, true}, 3, {{"width", "32"}, {"dropout", "0"}, {"layers", "2"}}},
};

std::shared_ptr<models::Model> make(const Case& it) {
  torch::manual_seed(1);
  return models::make_model(it.model, it.shape, it.arguments);
}

// What is less than `least` beside b counts for nothing.
double apart(const Tensor& a, const Tensor& b, double least = 1e-12) {
  return (a - b).norm().item<double>() / (b.norm().item<double>() + least);
}

double norm_of_gradients(const torch::nn::Module& model) {
  double sum = 0;
  for (const auto& parameter : model.parameters()) sum += std::pow(parameter.grad().norm().item<double>(), 2);
  return std::sqrt(sum);
}

// Everything by ours or tried, however small.
const Settings kAll{.least_flops = 0};

Tensor input_of(const Case& it) {
  auto sizes = it.shape.input;
  sizes.insert(sizes.begin(), it.batch);
  return it.shape.text ? torch::randint(it.shape.classes, sizes, torch::kInt64) : torch::randn(sizes);
}

// An element that is 0 in one and 1e-7 in the other may pass ReLU here and not there: whole models agree to percents.
// Several steps, so that each candidate of each pass has its turn: outputs, gradients and buffers.
TEST(Optimize, ModelsOfTheZooComputeTheSame) {
  for (const Case& it : kCases) {
    SCOPED_TRACE(it.model);
    auto ours = make(it), theirs = make(it);
    optimize(*ours, kAll);
    for (int step = 0; step < 6; ++step) {
      const Tensor x = input_of(it), target = torch::randint(10, {it.batch * (it.shape.text ? it.shape.input[0] : 1)});
      const bool training = step % 3 != 2;
      ours->train(training);
      theirs->train(training);
      ours->zero_grad();
      theirs->zero_grad();
      const Tensor y = ours->forward(x), wanted = theirs->forward(x);
      ASSERT_LT(apart(y, wanted), 1e-4) << step;
      torch::cross_entropy_loss(y.flatten(0, -2), target).backward();
      wanted.flatten(0, -2).log_softmax(1).gather(1, target.unsqueeze(1)).mean().neg().backward();
      const double all = 1e-2 * norm_of_gradients(*theirs);
      for (const auto& item : theirs->named_parameters()) {
        const auto& gradient = ours->named_parameters()[item.key()].grad();
        ASSERT_TRUE(gradient.defined()) << item.key();
        EXPECT_LT(apart(gradient, item.value().grad(), all), 5e-2) << item.key() << " step " << step;
      }
      for (const auto& item : theirs->named_buffers()) {
        EXPECT_LT(apart(ours->named_buffers()[item.key()].to(torch::kFloat64), item.value().to(torch::kFloat64)), 1e-4)
            << item.key();
      }
    }
  }
}

// LibTorch's modules compute a linear layer as a product and an addition, which would pass ours by.
TEST(Optimize, LinearLayersOfTheZooAreOurs) {
  for (const Case& it : kCases) {
    auto model = make(it);
    optimize(*model, kAll);
    model->forward(input_of(it));
    std::set<std::string> ours;
    for (const Use& use : uses(*model)) {
      if (use.operation == "linear") ours.insert(use.layer);
    }
    for (const auto& item : model->named_modules()) {
      if (item.value()->as<torch::nn::LinearImpl>() == nullptr) continue;
      EXPECT_TRUE(ours.contains(item.key())) << it.model << ": " << item.key();
    }
  }
}

// Choices are made before the first result, and stay.
TEST(Optimize, TwoRunsComputeTheSameBits) {
  for (const Case& it : kCases) {
    SCOPED_TRACE(it.model);
    torch::manual_seed(2);
    const Tensor x = input_of(it), target = torch::randint(10, {it.batch * (it.shape.text ? it.shape.input[0] : 1)});
    std::vector<Tensor> before;
    for (int run = 0; run < 2; ++run) {
      auto model = make(it);
      optimize(*model, kAll);
      std::vector<Tensor> results;
      for (int step = 0; step < 2; ++step) {
        const Tensor y = model->forward(x);
        torch::cross_entropy_loss(y.flatten(0, -2), target).backward();
        results.push_back(y.detach());
      }
      for (const auto& parameter : model->parameters()) results.push_back(parameter.grad());
      for (std::size_t k = 0; k < before.size(); ++k) EXPECT_TRUE(torch::equal(before[k], results[k])) << k;
      before = results;
    }
  }
}

// Measured with care all of them are known, the one that is picked no slower than LibTorch's.
TEST(Optimize, SaysWhatItChoseFrom) {
  auto model = make(kCases[1]);
  optimize(*model, {.least_flops = 0, .thoroughness = Thoroughness::thorough});
  torch::NoGradGuard no_grad;
  model->forward(input_of(kCases[1]));
  int chosen = 0;
  for (const Use& use : uses(*model)) {
    if (use.candidates.size() < 2) continue;
    ++chosen;
    EXPECT_EQ(use.candidates.front().implementation, "libtorch");
    EXPECT_LE(use.measured_us, use.candidates.front().us) << use.shape;
    EXPECT_GT(use.measured_us, 0);
  }
  EXPECT_GT(chosen, 10);
}

TEST(Optimize, WithoutGradientsTheSame) {
  for (const Case& it : kCases) {
    SCOPED_TRACE(it.model);
    auto ours = make(it), theirs = make(it);
    optimize(*ours, kAll);
    ours->eval();
    theirs->eval();
    torch::NoGradGuard no_grad;
    const Tensor x = input_of(it);
    EXPECT_LT(apart(ours->forward(x), theirs->forward(x)), 1e-4);
  }
}

TEST(Optimize, KeepsParametersNamesAndOrder) {
  auto model = make(kCases[1]);
  const auto before = model->named_parameters();
  optimize(*model);
  const auto after = model->named_parameters();
  ASSERT_EQ(before.keys(), after.keys());
  for (const auto& item : before) EXPECT_TRUE(item.value().is_same(after[item.key()]));
}

// A model of a user's own, with members of LibTorch's types.
struct Own : torch::nn::Module {
  Own()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).groups(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(8))) {}
  Tensor forward(const Tensor& x) { return torch::max_pool2d(torch::relu(norm(conv(x))), 2).mean({2, 3}); }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
};

TEST(Optimize, OwnModules) {
  torch::manual_seed(2);
  Own ours, theirs;
  torch::NoGradGuard no_grad;
  for (const auto& item : theirs.named_parameters()) ours.named_parameters()[item.key()].copy_(item.value());
  optimize(ours, kAll);
  torch::AutoGradMode with_grad(true);
  const Tensor x = torch::randn({4, 3, 17, 15});
  ours.forward(x).sum().backward();
  theirs.forward(x).sum().backward();
  for (const auto& item : theirs.named_parameters()) {
    EXPECT_LT((ours.named_parameters()[item.key()].grad() - item.value().grad()).abs().max().item<double>(), 1e-3)
        << item.key();
  }
  ASSERT_FALSE(uses(ours).empty());
  EXPECT_EQ(uses(ours)[0].layer, "conv");
  optimize(ours, {.operators = Operators::libtorch});
  EXPECT_TRUE(uses(ours).empty());
}

// What is not plain f32 goes LibTorch's way.
TEST(Optimize, OtherTypesAndShapesAreLibTorchs) {
  Own model;
  optimize(model);
  model.to(torch::kFloat64);
  EXPECT_EQ(model.forward(torch::randn({2, 3, 9, 9}, torch::kFloat64)).scalar_type(), torch::kFloat64);
  model.to(torch::kFloat32);
  EXPECT_EQ(model.conv->forward(torch::randn({3, 9, 9})).dim(), 3);  // without a batch
  EXPECT_EQ(model.conv->forward(torch::randn({0, 3, 9, 9})).size(0), 0);
  EXPECT_THROW(model.conv->forward(torch::randn({2, 4, 9, 9})), c10::Error);
  EXPECT_THROW(model.conv->forward(torch::randn({2, 3, 2, 2})), c10::Error);
}

// Gradients of gradients, against LibTorch's.
TEST(Optimize, DoubleBackward) {
  torch::manual_seed(3);
  Own ours, theirs;
  {
    torch::NoGradGuard no_grad;
    for (const auto& item : theirs.named_parameters()) ours.named_parameters()[item.key()].copy_(item.value());
  }
  optimize(ours, kAll);
  const Tensor value = torch::randn({3, 3, 9, 9});
  const auto penalty = [&](Own& net) {
    auto x = value.clone().requires_grad_();
    auto g = torch::autograd::grad({net.forward(x).pow(2).sum()}, {x}, {}, true, true)[0];
    g.pow(2).sum().backward();
    return g;
  };
  EXPECT_LT(apart(penalty(ours), penalty(theirs)), 1e-4);
  for (const auto& item : theirs.named_parameters()) {
    if (!item.value().grad().defined()) continue;
    const double size = item.value().grad().norm().item<double>();
    EXPECT_LT((ours.named_parameters()[item.key()].grad() - item.value().grad()).norm().item<double>(),
              1e-3 * size + 1e-3)
        << item.key();
  }
}

struct Mixed : torch::nn::Module {
  Mixed()
      : lstm(register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(5, 6).num_layers(2).batch_first(true)))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})))),
        linear(register_module("linear", torch::nn::Linear(6, 4))) {}
  Tensor forward(const Tensor& x) { return linear(gelu(norm(std::get<0>(lstm(x))))); }
  torch::nn::LSTM lstm;
  torch::nn::LayerNorm norm;
  torch::nn::Linear linear;
};

TEST(Optimize, SequencesOnceAndTwice) {
  torch::manual_seed(5);
  Mixed ours, theirs;
  {
    torch::NoGradGuard no_grad;
    for (const auto& item : theirs.named_parameters()) ours.named_parameters()[item.key()].copy_(item.value());
  }
  optimize(ours, kAll);
  const Tensor value = torch::randn({3, 4, 5});
  const auto penalty = [&](Mixed& net) {
    auto x = value.clone().requires_grad_();
    auto g = torch::autograd::grad({net.forward(x).pow(2).sum()}, {x}, {}, true, true)[0];
    (g.pow(2).sum() + net.forward(x).sum()).backward();
    return g;
  };
  EXPECT_LT(apart(penalty(ours), penalty(theirs)), 1e-4);
  for (const auto& item : theirs.named_parameters()) {
    EXPECT_LT(apart(ours.named_parameters()[item.key()].grad(), item.value().grad()), 1e-3) << item.key();
  }
  EXPECT_EQ(uses(ours).front().operation, "lstm");
}

// One module twice in a graph that is walked twice.
TEST(Optimize, UsedTwiceAndRetained) {
  torch::manual_seed(4);
  const auto options = torch::nn::Conv2dOptions(4, 4, 3).padding(1);
  torch::nn::Conv2d ours(options), theirs(options);
  {
    torch::NoGradGuard no_grad;
    theirs->weight.copy_(ours->weight);
    theirs->bias.copy_(ours->bias);
  }
  optimize(*ours, kAll);
  const Tensor x = torch::randn({2, 4, 6, 5}).transpose(2, 3);  // not contiguous
  const auto sharpness = [&](torch::nn::Conv2d& conv) {
    const Tensor y = conv(conv(x).sigmoid()).pow(2).sum();
    const auto g = torch::autograd::grad({y}, {conv->weight}, {}, true, true)[0];
    return torch::autograd::grad({g.pow(2).sum()}, {conv->weight})[0];
  };
  EXPECT_LT(apart(sharpness(ours), sharpness(theirs)), 1e-4);
  const auto twice = [&](torch::nn::Conv2d& conv) {
    const Tensor y = conv(conv(x).relu()).sum();
    y.backward({}, true);
    y.backward();
    return conv->weight.grad();
  };
  EXPECT_LT(apart(twice(ours), twice(theirs)), 1e-4);
}

}  // namespace optimize_test
}  // namespace trireme::operators
