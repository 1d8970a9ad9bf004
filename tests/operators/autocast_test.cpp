// Optimized models under autocast: f32 in and out, factors rounded to bf16 where that is faster, gradients near f32's.
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>

#include "trireme/models/model.h"
#include "trireme/operators/conv_runs.h"
#include "trireme/operators/optimize.h"

namespace trireme::operators {
namespace autocast_test {

using testing::HasSubstr;
using testing::Not;
using torch::Tensor;

// Everything by ours or tried, however small.
const Settings kAll{.least_flops = 0};

class Bf16Autocast {
 public:
  Bf16Autocast() {
    set(true);
    at::autocast::increment_nesting();
  }
  ~Bf16Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set(before_);
  }

 private:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  static void set(bool on) {
    at::autocast::set_autocast_enabled(torch::kCPU, on);
    at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
  }
  const bool before_ = at::autocast::is_autocast_enabled(torch::kCPU);
#else
  static void set(bool on) {
    at::autocast::set_cpu_enabled(on);
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  }
  const bool before_ = at::autocast::is_cpu_enabled();
#endif
};

template <class Body>
auto under_autocast(const Body& body) {
  const Bf16Autocast autocast;
  return body();
}

// A linear layer by LibTorch's operator of this name, as models of the zoo call it; LibTorch's own C++ layer does not.
Tensor call(torch::nn::Linear& linear, const Tensor& x) { return torch::linear(x, linear->weight, linear->bias); }

double apart(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kFloat64) - b.to(torch::kFloat64)).norm().item<double>() / (b.norm().item<double>() + 1e-12);
}

TEST(Autocast, OptimizedLayersTakeAndGiveF32) {
  torch::manual_seed(1);
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(5, 7, 3).padding(1));
  torch::nn::Linear linear(9, 11);
  const Tensor picture = torch::randn({2, 5, 6, 8}), rows = torch::randn({3, 4, 9});
  const Tensor y = conv(picture), z = call(linear, rows);
  EXPECT_EQ(under_autocast([&] { return conv(picture); }).scalar_type(), torch::kBFloat16) << "LibTorch's own";
  optimize(*conv, kAll);
  optimize(*linear, kAll);
  const Tensor ours = under_autocast([&] { return conv(picture); });
  EXPECT_EQ(ours.scalar_type(), torch::kFloat32);
  EXPECT_LT(apart(ours, y), 1e-2);
  EXPECT_TRUE(ours.requires_grad());
  const Tensor also_ours = under_autocast([&] { return call(linear, rows); });
  EXPECT_EQ(also_ours.scalar_type(), torch::kFloat32);
  EXPECT_LT(apart(also_ours, z), 1e-2);
  optimize(*conv, {.operators = Operators::libtorch});
  EXPECT_EQ(under_autocast([&] { return conv(picture); }).scalar_type(), torch::kBFloat16) << "taken back";
}

// What is not ours to take goes LibTorch's way: cast, with its cache.
TEST(Autocast, OtherTensorsAreLibTorchs) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(4, 4, 3)), first(torch::nn::Conv2dOptions(4, 4, 1));
  torch::nn::Linear linear(4, 2);
  optimize(*conv, kAll);
  optimize(*linear, kAll);
  const Tensor x = torch::randn({2, 4, 6, 6});
  const Tensor wanted = conv(first(x));
  const Bf16Autocast outer;
  const Bf16Autocast inner;
  const Tensor y = conv(first(x));  // bf16 comes in
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_LT(apart(y, wanted), 2e-2);
  EXPECT_EQ(call(linear, torch::empty({0, 4})).sizes(), at::IntArrayRef({0, 2}));
  EXPECT_EQ(conv(torch::empty({0, 4, 6, 6})).size(0), 0);
  EXPECT_EQ(torch::conv2d(x.to(torch::kFloat64), conv->weight.to(torch::kFloat64)).scalar_type(), torch::kFloat64);
}

// A weight that autocast has cast and kept, from before it was ours; twice within one autocast; and gradients inside.
TEST(Autocast, CastWeightsAreNotRead) {
  torch::manual_seed(2);
  torch::nn::Linear linear(6, 5);
  const Tensor x = torch::randn({4, 6});
  const Bf16Autocast autocast;
  call(linear, x);
  optimize(*linear, kAll);
  const Tensor before = call(linear, x);
  EXPECT_EQ(before.scalar_type(), torch::kFloat32);
  {
    torch::NoGradGuard no_grad;
    linear->weight.mul_(2);
    linear->bias.mul_(2);
  }
  const Tensor after = call(linear, x);
  EXPECT_LT(apart(after, 2 * before), 1e-2);
  after.sum().backward();
  EXPECT_EQ(linear->weight.grad().scalar_type(), torch::kFloat32);
  EXPECT_LT(apart(linear->weight.grad()[0], x.sum(0)), 1e-2);
}

TEST(Autocast, WithoutGradientsAndFrozen) {
  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)), torch::nn::BatchNorm2d(8),
                            torch::nn::ReLU(), torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 4, 3)));
  const Tensor x = torch::randn({2, 3, 9, 9});
  net->eval();
  const Tensor wanted = net->forward(x);
  optimize(*net, kAll);
  net->parameters()[0].set_requires_grad(false);
  for (const bool gradients : {false, true}) {
    const torch::AutoGradMode mode(gradients);
    const Tensor y = under_autocast([&] { return net->forward(x); });
    EXPECT_EQ(y.requires_grad(), gradients);
    EXPECT_LT(apart(y, wanted), 2e-2);
    if (gradients) y.sum().backward();
  }
  EXPECT_FALSE(net->parameters()[0].grad().defined());
  EXPECT_TRUE(net->parameters()[1].grad().defined());
}

// Every implementation, alone: LibTorch's in bf16 and in f32 and all of ours, against f64.
TEST(Autocast, EveryImplementationOfAPass) {
  torch::manual_seed(4);
  for (const ops::ConvShape& shape : {ops::ConvShape{.batch = 3,
                                     .in_channels = 8,
                                     .height = 9,
                                     .width = 7,
                                     .out_channels = 12,
                                     .kernel = {3, 3},
                                     .padding = {1, 1}},
                                      ops::ConvShape{.batch = 2,
                                      .in_channels = 6,
                                      .height = 8,
                                      .width = 8,
                                      .out_channels = 4,
                                      .kernel = {3, 1},
                                      .stride = {2, 1},
                                      .groups = 2}}) {
    const Tensor x = torch::randn({shape.batch, shape.in_channels, shape.height, shape.width}),
                 w = torch::randn(
                     {shape.out_channels, shape.in_channels / shape.groups, shape.kernel[0], shape.kernel[1]}),
                 g = torch::randn({shape.batch, shape.out_channels, shape.out_height(), shape.out_width()});
    const Tensor x64 = x.to(torch::kFloat64).requires_grad_(), w64 = w.to(torch::kFloat64).requires_grad_();
    const Tensor y64 = torch::conv2d(x64, w64, {}, shape.stride, shape.padding, shape.dilation, shape.groups);
    y64.backward(g.to(torch::kFloat64));
    std::vector<ConvImplementation> all{{}, {.bf16 = true}};
    for (const auto* algorithm : ops::conv_algorithms()) all.push_back({algorithm});
    for (const auto& it : all) {
      for (const ops::Pass pass : ops::kPasses) {
        if (it.algorithm && !it.algorithm->takes(shape, pass)) continue;
        const bool forward = pass == ops::Pass::forward, of_data = pass == ops::Pass::data;
        const Tensor result = run({shape, pass, of_data ? Tensor() : channels_last(x),
                                   forward || of_data ? w : Tensor(), forward ? Tensor() : channels_last(g)},
                                  it);
        EXPECT_EQ(result.scalar_type(), torch::kFloat32);
        EXPECT_LT(apart(result, forward   ? y64
                                : of_data ? x64.grad()
                                          : w64.grad()),
                  1e-2)
            << it.name() << " " << ops::name(pass);
      }
    }
  }
}

struct Case {
  const char* model;
  models::Shape shape;
  std::int64_t batch;
  models::Arguments arguments = {};
};

const Case kCases[] = {
    {"lenet", {{1, 28, 28}, 10}, 16},
    {"resnet18", {{3, 32, 32}, 10}, 8, {{"width", "16"}}},
    {"mlp", {{1, 28, 28}, 10}, 16},
    {"lstm-lm", {{7}, 50, true}, 6, {{"width", "24"}, {"dropout", "0"}}},
    {"gpt-small", {{9}, 50, true}, 6, {{"width", "32"}, {"dropout", "0"}, {"layers", "2"}}},
};

struct Learning {
  Tensor first_gradient;  // of all parameters
  std::vector<double> losses;
};

// A few steps on a batch that stays.
Learning learn(const Case& it, bool autocast, const Settings& settings = kAll) {
  torch::manual_seed(5);
  auto model = models::make_model(it.model, it.shape, it.arguments);
  optimize(*model, settings);
  auto sizes = it.shape.input;
  sizes.insert(sizes.begin(), it.batch);
  const Tensor x = it.shape.text ? torch::randint(it.shape.classes, sizes, torch::kInt64) : torch::randn(sizes);
  const Tensor target = torch::randint(10, {it.batch * (it.shape.text ? it.shape.input[0] : 1)});
  Learning result;
  for (int step = 0; step < 12; ++step) {
    model->zero_grad();
    Tensor y = autocast ? under_autocast([&] { return model->forward(x); }) : model->forward(x);
    const Tensor loss = torch::cross_entropy_loss(y.to(torch::kFloat32).flatten(0, -2), target);
    loss.backward();
    result.losses.push_back(loss.item<double>());
    std::vector<Tensor> gradients;
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model->parameters()) {
      EXPECT_EQ(parameter.grad().scalar_type(), torch::kFloat32);
      gradients.push_back(parameter.grad().flatten().clone());
      parameter.sub_(parameter.grad(), 0.02);
    }
    if (step == 0) result.first_gradient = torch::cat(gradients);
  }
  EXPECT_THAT(measurements_note(), Not(HasSubstr("other numbers"))) << it.model;
  return result;
}

TEST(Autocast, ModelsLearnAsInF32) {
  for (const Case& it : kCases) {
    SCOPED_TRACE(it.model);
    const Learning ours = learn(it, true), f32 = learn(it, false);
    const Learning theirs = learn(it, true, {.operators = Operators::libtorch});
    // Activations that stay f32 lose less than LibTorch's.
    EXPECT_LT(apart(ours.first_gradient, f32.first_gradient),
              std::max(0.02, 1.2 * apart(theirs.first_gradient, f32.first_gradient)));
    EXPECT_LT(ours.losses.back(), ours.losses.front());
    EXPECT_NEAR(ours.losses.front(), f32.losses.front(), 0.02);
    EXPECT_NEAR(ours.losses.back(), f32.losses.back(), 0.1);
  }
}

// Layers of the zoo reach our operator by whatever module they are.
TEST(Autocast, LinearLayersOfTheZooAreOurs) {
  for (const Case& it : kCases) {
    auto model = models::make_model(it.model, it.shape, it.arguments);
    optimize(*model, kAll);
    auto sizes = it.shape.input;
    sizes.insert(sizes.begin(), it.batch);
    under_autocast([&] {
      return model->forward(it.shape.text ? torch::randint(it.shape.classes, sizes, torch::kInt64)
                                          : torch::randn(sizes));
    });
    bool linear = false;
    for (const Use& use : uses(*model)) linear = linear || (use.operation == "linear" && use.autocast);
    EXPECT_TRUE(linear) << it.model;
  }
}

TEST(Autocast, UsesSayWhatRounds) {
  torch::nn::Linear linear(64, 64);
  optimize(*linear, kAll);
  const Tensor x = torch::randn({32, 64});
  call(linear, x);
  const auto f32 = uses(*linear);
  ASSERT_EQ(f32.size(), 1u);
  EXPECT_FALSE(f32[0].bf16);
  under_autocast([&] { return call(linear, x); });
  for (const Use& use : uses(*linear)) {
    std::vector<std::string> names;
    for (const auto& each : use.candidates) names.push_back(each.implementation);
    EXPECT_EQ(use.bf16, use.picked == "bf16" || use.picked == "amx" || use.picked == "libtorch-bf16") << use.picked;
    EXPECT_THAT(names, testing::IsSupersetOf({"libtorch", "tiled", "libtorch-bf16"}));
  }
}

}  // namespace autocast_test
}  // namespace trireme::operators
