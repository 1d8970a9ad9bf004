#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/parallel/split_models.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"
#include "trireme/nn/locally_connected.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/shared_linear.h"
#include "trireme/parallel/tensor/tensor_rules.h"

namespace trireme::parallel::split_test::of_layers {
namespace {

using nn::BatchNorm2d;
using nn::Conv2d;
using nn::Linear;
using nn::LocallyConnected2d;
using nn::LocallyConnected2dOptions;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using torch::nn::Conv2dOptions;
using torch::nn::Sequential;

struct Case {
  std::string rules;
  std::function<Sequential()> make;
  std::vector<std::int64_t> input;
};

Linear with_heads() {
  Linear layer(6, 3 * 5 * 2);
  layer->set_heads(3, 5);
  return layer;
}
// As much of attention as the layout of query, key and value asks for.
Sequential attention() {
  auto mix = [](const torch::Tensor& x) {
    auto groups = x.view({x.size(0), 3, -1});
    return groups.select(1, 0) * groups.select(1, 1) + groups.select(1, 2);
  };
  return Sequential(with_heads(), torch::nn::Functional(mix), Linear(5 * 2, 4));
}
torch::nn::ReLU relu() { return torch::nn::ReLU(torch::nn::ReLUOptions(true)); }
Sequential two_linear() { return Sequential(Linear(6, 9), relu(), Linear(9, 5)); }
Sequential two_conv() {
  return Sequential(Conv2d(Conv2dOptions(4, 7, 3).padding(1)), BatchNorm2d(7), relu(),
                    Conv2d(Conv2dOptions(7, 5, 3).stride(2)));
}
Conv2d conv(const Conv2dOptions& options) { return Conv2d(options); }
LocallyConnected2d connected(std::array<std::int64_t, 2> size) {
  return LocallyConnected2d(LocallyConnected2dOptions{2, 5, size, {3, 3}, {1, 1}, {1, 1}});
}

const std::vector<std::int64_t> kRows{3, 6}, kImage{2, 4, 11, 9};

std::vector<Case> cases() {
  return {
      {"0=column", [] { return Sequential(Linear(6, 9)); }, kRows},
      {"0=column", [] { return Sequential(Linear(torch::nn::LinearOptions(6, 4).bias(false))); }, {2, 3, 6}},
      {"0=row", [] { return Sequential(Linear(6, 9)); }, kRows},
      {"0=row", [] { return Sequential(Linear(torch::nn::LinearOptions(6, 4).bias(false))); }, {2, 3, 6}},
      {"0=heads,2=row", attention, kRows},
      {"0=column,2=row", two_linear, kRows},
      {"0=column,2=column", two_linear, kRows},
      {"0=column", two_linear, kRows},
      {"0=row,2=row", two_linear, kRows},
      {"0=out-channels", [] { return Sequential(conv(Conv2dOptions(4, 6, 3))); }, kImage},
      {"0=in-channels", [] { return Sequential(conv(Conv2dOptions(4, 6, 3).padding(2).stride(2))); }, kImage},
      {"0=space", [] { return Sequential(conv(Conv2dOptions(4, 6, 3).padding(1))); }, kImage},
      {"0=space",
       [] {
         return Sequential(conv(Conv2dOptions(4, 6, {5, 3}).stride(2).padding(2).groups(2)));
       },
       kImage},
      {"0=space", [] { return Sequential(conv(Conv2dOptions(4, 6, 2).stride(2))); }, kImage},
      {"0=space", [] { return Sequential(conv(Conv2dOptions(4, 6, 3).dilation(2).padding(torch::kSame))); }, kImage},
      {"0=out-channels,1=channels,3=in-channels", two_conv, kImage},
      {"0=out-channels,1=channels,3=out-channels", two_conv, kImage},
      {"1=channels", two_conv, kImage},
      {"0=space,1=space,3=space", two_conv, kImage},
      {"0=space,1=space", two_conv, kImage},
      {"0=space,1=space,3=in-channels", two_conv, kImage},
      {"0=space,1=space",
       [] {
         return Sequential(conv(Conv2dOptions(4, 3, 5).padding(2)),
                           nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)), nn::Flatten(),
                           Linear(3 * 6 * 5, 4));
       },
       kImage},
      {"0=out-channels,3=row",
       [] { return Sequential(conv(Conv2dOptions(4, 5, 3)), nn::MaxPool2d(2), nn::Flatten(), Linear(5 * 4 * 3, 4)); },
       kImage},
      {"0=channels",
       [] {
         return Sequential(connected({8, 7}));
       },
       {3, 2, 8, 7}},
      {"0=height",
       [] {
         return Sequential(connected({8, 7}));
       },
       {3, 2, 8, 7}},
      {"0=width",
       [] {
         return Sequential(connected({8, 7}));
       },
       {3, 2, 8, 7}},
      {"0=height,1=height",
       [] {
         return Sequential(connected({9, 4}),
                           LocallyConnected2d(LocallyConnected2dOptions{5, 2, {9, 4}, {4, 2}, {1, 2}, {1, 0}, false}));
       },
       {2, 2, 9, 4}},
      {"0=width,1=channels",
       [] {
         return Sequential(connected({4, 9}),
                           LocallyConnected2d(LocallyConnected2dOptions{5, 4, {4, 9}, {2, 2}, {2, 2}, {0, 0}}));
       },
       {2, 2, 4, 9}},
  };
}

TEST(SplitLayers, EqualTheWholeOnes) {
  for (const auto& one : cases()) {
    for (int ranks : {2, 3, 4}) expect_split_equals_whole(one.make, ranks, one.rules, torch::randn(one.input));
  }
}

TEST(SplitLayers, EmbeddingsByVocabulary) {
  auto make = [] { return Sequential(nn::Embedding(11, 4), Linear(4, 3)); };
  for (int ranks : {2, 3, 4}) {
    expect_split_equals_whole(make, ranks, "0=vocabulary", torch::randint(11, {5, 6}, torch::kLong));
  }
}

// What travels, where, and nothing else.
TEST(SplitLayers, ExchangeOnlyWhereTheAlgebraNeedsIt) {
  constexpr int kSamples = 8, kIn = 6, kOut = 5;
  auto models = make_equal(two_linear, 2);
  auto example = torch::randn({kSamples, kIn});
  run_threads(2, [&](Communicator& comm) {
    auto& model = models[comm.rank()];
    TensorParallel split(
        *model, [&](torch::Tensor x) { return model->forward(x); }, comm, "0=column,2=row", example);
    auto input = example.clone().set_requires_grad(true);
    auto start = comm.bytes_sent();
    auto output = model->forward(input);
    // An all-reduce of n bytes between two sends n bytes each: one forward, of the output; one backward, of the input.
    EXPECT_EQ(comm.bytes_sent() - start, kSamples * kOut * sizeof(float));
    start = comm.bytes_sent();
    output.sum().backward();
    EXPECT_EQ(comm.bytes_sent() - start, kSamples * kIn * sizeof(float));
    start = comm.bytes_sent();
    model->forward(example).sum().backward();
    EXPECT_EQ(comm.bytes_sent() - start, kSamples * kOut * sizeof(float)) << "no one asked for the input's gradient";
  });
}

TEST(SplitLayers, SayWhatTheyDo) {
  EXPECT_THAT(expect_split_equals_whole(two_linear, 2, "0=column", torch::randn(kRows)),
              ElementsAre("0=column, input whole", "2 gathers, input 5+4 along 1"));
  EXPECT_THAT(expect_split_equals_whole(two_linear, 2, "0=whole", torch::randn(kRows)), IsEmpty());
}

// Parts drop what the whole would, whichever way it is split, and the ranks' random numbers stay together.
TEST(SplitLayers, DropWhatTheWholeDrops) {
  auto make = [] { return Sequential(Linear(6, 9), nn::Dropout(0.5), Linear(9, 5), nn::Dropout(0.5), Linear(5, 2)); };
  auto models = make_equal(make, 4);
  auto input = torch::randn(kRows);
  nn::set_random(3);
  auto expected = models[3]->forward(input);
  run_threads(3, [&](Communicator& comm) {
    auto& model = models[comm.rank()];
    TensorParallel split(
        *model, [&](torch::Tensor x) { return model->forward(x); }, comm, "0=column,2=row", input);
    nn::set_random(3);
    expect_close(model->forward(input), expected, "output");
  });
}

// The exchange that is hidden behind the weight's gradient is the one that is not.
TEST(SplitLayers, HideTheSumOfGradients) {
  auto input = torch::randn({2, 3, 6}), weight = torch::randn({4, 6}), bias = torch::randn({4});
  for (bool biased : {true, false}) {
    run_threads(3, [&](Communicator& comm) {
      auto gradients = [&](bool hidden) {
        auto x = input.clone().requires_grad_(), w = (weight * (comm.rank() + 1)).requires_grad_();
        auto b = biased ? bias.clone().requires_grad_() : torch::Tensor();
        auto y =
            hidden ? shared_linear(x, w, b, comm) : torch::linear(copy_in(x, comm), w, biased ? b : torch::zeros({4}));
        y.square().sum().backward();
        return std::vector{y.detach(), x.grad(), w.grad(), biased ? b.grad() : torch::zeros({1})};
      };
      auto found = gradients(true), expected = gradients(false);
      for (std::size_t k = 0; k < found.size(); ++k) expect_close(found[k], expected[k], std::to_string(k));
    });
  }
}

}  // namespace
}  // namespace trireme::parallel::split_test::of_layers
