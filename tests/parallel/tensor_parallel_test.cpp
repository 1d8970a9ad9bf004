#include "trireme/parallel/tensor/tensor_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/parallel/split_models.h"
#include "trireme/base/error.h"
#include "trireme/nn/layers.h"
#include "trireme/parallel/tensor/cross_entropy.h"
#include "trireme/parallel/tensor/repartition.h"
#include "trireme/parallel/tensor/tensor_rules.h"

namespace trireme::parallel::split_test::of_rules {
namespace {

using nn::Conv2d;
using nn::Linear;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using torch::nn::Conv2dOptions;
using torch::nn::Sequential;

Sequential small_network() {
  return Sequential(Conv2d(Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8), torch::nn::ReLU(),
                    Conv2d(Conv2dOptions(8, 6, 3).groups(2)), nn::Flatten(), Linear(6 * 4 * 4, 10));
}

// What each rank of two is told.
std::string refusal_of(const std::function<Sequential()>& make, const std::string& rules,
                       const torch::Tensor& example) {
  auto models = make_equal(make, 2);
  std::string said = "no error";
  std::mutex mutex;
  run_threads(2, [&](Communicator& comm) {
    auto& model = models[comm.rank()];
    try {
      TensorParallel split(
          *model, [&](torch::Tensor x) { return model->forward(x); }, comm, rules, example);
    } catch (const Error& error) {
      std::scoped_lock lock(mutex);
      said = error.what();
    }
  });
  EXPECT_THAT(said, Not(HasSubstr("\n")));
  return said;
}

TEST(TensorParallelRules, RefuseWithWhatIsPossible) {
  auto example = torch::randn({2, 3, 6, 6});
  auto of = [&](const std::string& rules) { return refusal_of(small_network, rules, example); };
  EXPECT_THAT(of("0"), HasSubstr("write LAYER=KIND"));
  EXPECT_THAT(of("fc9=column"), AllOf(HasSubstr("no layer fc9"), HasSubstr("0 (out-channels, in-channels, space)")));
  EXPECT_THAT(of("2=column"), AllOf(HasSubstr("ReLU"), HasSubstr("cannot be split")));
  EXPECT_THAT(of("0=column"), HasSubstr("a Conv2d is split by out-channels, in-channels, space"));
  EXPECT_THAT(of("5=heads"), HasSubstr("set_heads"));
  EXPECT_THAT(of("3=out-channels"), HasSubstr("groups"));
  EXPECT_THAT(of("1=space"), HasSubstr("not split by space"));
  EXPECT_THAT(of("0=out-channels"), HasSubstr("1 gets 4 of its 8 channels from 0=out-channels: add 1=channels"));
  EXPECT_THAT(of("0=space"), HasSubstr("1 gets 3 of its 6 rows from 0=space: add 1=space"));
  EXPECT_EQ(of("5=column"), "no error");
}

TEST(TensorParallelRules, RefuseWhatIsTooSmall) {
  auto make = [] { return Sequential(Linear(1, 1), Linear(1, 3)); };
  auto example = torch::randn({2, 1});
  EXPECT_THAT(refusal_of(make, "0=column", example), HasSubstr("1 outputs cannot be split over 2 workers; at most 1"));
  EXPECT_THAT(refusal_of(make, "1=row", example), HasSubstr("1 inputs cannot be split"));
}

// Not a layer of ours, and one that silently computes something else.
TEST(TensorParallelRules, RefuseWhatDoesNotFitBetween) {
  auto norm = [] {
    return Sequential(Linear(4, 6), torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})), Linear(6, 2));
  };
  EXPECT_THAT(refusal_of(norm, "0=column", torch::randn({2, 4})), HasSubstr("0=column"));
  auto softmax = [] { return Sequential(Linear(4, 6), torch::nn::Softmax(1), Linear(6, 2)); };
  EXPECT_THAT(refusal_of(softmax, "0=column,2=row", torch::randn({2, 4})), HasSubstr("differ from the whole model's"));
  auto pool = [] {
    return Sequential(Conv2d(Conv2dOptions(1, 2, 3).padding(1)), torch::nn::MaxPool2d(2), Conv2d(2, 2, 1));
  };
  EXPECT_THAT(refusal_of(pool, "0=space", torch::randn({1, 1, 6, 4})), HasSubstr("2 gets 1+1 of 3"));
}

TEST(TensorParallelRules, TheFirstThatMatchesCounts) {
  auto kinds = TensorRules("0=whole,?=column").kinds_in(*Sequential(Linear(2, 2), Linear(2, 2), Linear(2, 2)));
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0], std::pair(std::string("1"), std::string("column")));
}

TEST(TensorParallelLoss, IsThatOfTheWholeScores) {
  constexpr std::int64_t kSamples = 9, kClasses = 7;
  auto scores = (torch::randn({3, 3, kClasses}) * 20).set_requires_grad(true);
  auto target = torch::randint(kClasses, {3, 3}, torch::kLong);
  target[1][2] = -100;
  auto correct_ones = scores.argmax(-1).eq(target).sum().item<std::int64_t>();
  for (const auto& [ranks, smoothing] : {std::pair(2, 0.0), {3, 0.0}, {2, 0.2}, {3, 0.2}}) {
    scores.mutable_grad() = torch::Tensor();
    auto expected = torch::cross_entropy_loss(scores.view({-1, kClasses}), target.flatten(), {}, at::Reduction::Mean,
                                              -100, smoothing);
    (expected * 3).backward();
    const double s = smoothing;
    run_threads(ranks, [&](Communicator& comm) {
      const Cut cut{2, 1, even_sizes(kClasses, comm.size())};
      auto own = local_of(scores.detach(), cut, comm.rank()).set_requires_grad(true);
      auto start = comm.bytes_sent();
      auto loss = cross_entropy(own, target, cut.sizes, comm, s);
      (loss * 3).backward();
      if (comm.size() == 2) {
        EXPECT_EQ(comm.bytes_sent() - start, 3 * kSamples * sizeof(float));
      }
      expect_close(loss.detach(), expected.detach(), "loss");
      expect_close(own.grad(), local_of(scores.grad(), cut, comm.rank()), "gradient");
      EXPECT_EQ(correct(own, target, cut.sizes, comm), correct_ones);
      auto whole = scores.detach().clone().set_requires_grad(true);
      EXPECT_TRUE(torch::equal(cross_entropy(whole, target, cut.sizes, comm, s), expected));
    });
  }
}

// Convolutions on each rank's own samples, split layers on all of them: the gradient of the mean over all samples.
TEST(TensorParallelBatch, IsGatheredBehindTheConvolutions) {
  auto make = [] {
    return Sequential(Conv2d(Conv2dOptions(3, 4, 3)), torch::nn::ReLU(), nn::Flatten(), Linear(4 * 4 * 4, 9),
                      torch::nn::ReLU(), Linear(9, 8), Linear(8, 5));
  };
  const std::vector<std::int64_t> rows{3, 1, 4};
  auto models = make_equal(make, 4);
  auto& whole = models[3];
  auto input = torch::randn({8, 3, 6, 6});
  auto target = torch::randint(5, {8}, torch::kLong);
  auto scores = whole->forward(input);
  auto expected = torch::cross_entropy_loss(scores, target);
  expected.backward();
  double square = 0;
  for (const auto& parameter : whole->parameters()) square += parameter.grad().square().sum().item<double>();
  run_threads(3, [&](Communicator& comm) {
    auto& model = models[comm.rank()];
    TensorParallel split(
        *model, [&](torch::Tensor x) { return model->forward(x); }, comm, "2=batch,3=column,5=row,6=column",
        input.narrow(0, 0, 2));
    EXPECT_THAT(split.partial(), ::testing::ElementsAre("0.weight", "0.bias"));
    const Cut samples{0, 1, rows};
    auto found = model->forward(local_of(input, samples, comm.rank()));
    auto own_target = local_of(target, samples, comm.rank());
    auto loss = split.loss(found, own_target);
    expect_close(loss.detach(), expected.detach(), "loss");
    EXPECT_EQ(split.correct(found, own_target), scores.argmax(1).eq(target).sum().item<std::int64_t>());
    loss.backward();
    split.sum_partial_gradients();
    EXPECT_NEAR(split.squared_gradient_norm(), square, 1e-4 * square);
    for (const auto& item : whole->named_parameters()) {
      expect_close(model->named_parameters()[item.key()].grad(), part_of(split, item.key(), item.value().grad()),
                   item.key());
    }
  });
}

TEST(TensorParallelBatch, GradientsReturnAsEqualsOrAsAddends) {
  const std::vector<std::int64_t> rows{2, 0, 1};
  run_threads(3, [&](Communicator& comm) {
    for (auto returned : {Returned::equal, Returned::addends}) {
      auto own = torch::full({rows[comm.rank()], 2}, comm.rank() + 1.0).set_requires_grad(true);
      auto all = gather_batch(own, batch_sizes(own.size(0), comm), comm, returned);
      EXPECT_TRUE(torch::equal(all.detach(), torch::tensor({{1.0, 1.0}, {1.0, 1.0}, {3.0, 3.0}}, own.options())));
      (all * 2).sum().backward();
      EXPECT_TRUE(torch::equal(own.grad(), torch::full_like(own, returned == Returned::equal ? 2 : 6)));
    }
  });
}

}  // namespace
}  // namespace trireme::parallel::split_test::of_rules
