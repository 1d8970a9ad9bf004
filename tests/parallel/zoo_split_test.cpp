#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/parallel/split_models.h"
#include "trireme/base/error.h"
#include "trireme/models/model.h"
#include "trireme/nn/dropout.h"
#include "trireme/parallel/tensor/tensor_rules.h"

namespace trireme::parallel::split_test::of_zoo {
namespace {

struct Case {
  std::string name;
  models::Arguments arguments;
  int ranks, steps;
};

models::Shape shape_of(const std::string& name) {
  if (name == "lstm-lm" || name == "gpt-small") return {{6}, 13, true};
  return {{3, 12, 12}, 10};
}

// In double precision: what normalization makes of rounding in a few steps would hide a mistake.
std::shared_ptr<models::Model> make(const Case& one) {
  auto model = models::make_model(one.name, shape_of(one.name), one.arguments);
  model->to(torch::kFloat64);
  return model;
}

// A few samples, the same in each step.
struct Batch {
  torch::Tensor input, target;
};
Batch batch_of(const models::Shape& shape) {
  torch::manual_seed(11);
  std::vector<std::int64_t> size = shape.input;
  size.insert(size.begin(), 5);
  if (!shape.text) return {torch::randn(size, torch::kFloat64), torch::randint(shape.classes, {5}, torch::kLong)};
  return {torch::randint(shape.classes, size, torch::kLong), torch::randint(shape.classes, size, torch::kLong)};
}

using Loss = std::function<torch::Tensor(const torch::Tensor& scores, const torch::Tensor& target)>;

std::vector<double> train(models::Model& model, const Batch& batch, int steps, const Loss& loss_of) {
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  std::vector<double> losses;
  nn::set_random(5);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    auto loss = loss_of(model.forward(batch.input), batch.target);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

void expect_equal_training(const Case& one) {
  const auto shape = shape_of(one.name);
  auto made = make_equal([&] { return make(one); }, one.ranks + 1);
  const auto batch = batch_of(shape);
  auto& whole = *made.back();
  auto losses = train(whole, batch, one.steps, [&](const torch::Tensor& scores, const torch::Tensor& target) {
    return torch::cross_entropy_loss(scores.view({-1, shape.classes}), target.flatten());
  });
  run_threads(one.ranks, [&](Communicator& comm) {
    torch::set_num_threads(1);  // the ranks share the cores
    Mesh mesh(comm, {1, 1, one.ranks});
    auto& model = *made[comm.rank()];
    auto split = tensor_parallel(model, mesh, default_rules(one.name, model), batch.input);
    EXPECT_FALSE(split.cuts().empty());
    auto own = train(model, batch, one.steps,
                     [&](const auto& scores, const auto& target) { return split.loss(scores, target); });
    for (int step = 0; step < one.steps; ++step) EXPECT_NEAR(own[step], losses[step], 1e-6 * losses[step]) << one.name;
    for (const auto& item : whole.named_parameters()) {
      expect_close(model.named_parameters()[item.key()], part_of(split, item.key(), item.value()),
                   one.name + " " + item.key(), 1e-6);
    }
  });
}

TEST(ZooSplit, LearnsAsTheWhole) {
  for (const auto& one : {
           Case{"mlp", {{"width", "31"}}, 2, 20},
           Case{"mlp", {{"width", "16"}, {"layers", "3"}, {"dropout", "0.2"}}, 4, 20},
           Case{"mlp-wide", {{"width", "64"}}, 4, 20},
           Case{"lenet", {}, 3, 20},
           Case{"local-cnn", {{"width", "6"}}, 2, 20},
           Case{"local-cnn", {{"width", "7"}}, 3, 20},
           Case{"resnet18", {{"width", "8"}}, 2, 20},
           Case{"resnet32", {{"depth", "8"}, {"width", "6"}}, 4, 20},
           Case{"lstm-lm", {{"width", "12"}}, 3, 20},
           Case{"gpt-small", {{"layers", "2"}, {"heads", "3"}, {"width", "24"}, {"dropout", "0"}}, 2, 20},
           Case{"gpt-small", {{"layers", "2"}, {"heads", "4"}, {"width", "24"}}, 4, 20},
           Case{"gpt-small", {{"layers", "2"}, {"heads", "4"}, {"width", "24"}, {"tied", "false"}}, 2, 20},
       }) {
    expect_equal_training(one);
  }
}

TEST(ZooSplit, LearnsAsTheWholeWhereItIsLarge) {
  expect_equal_training({"alexnet-small", {}, 2, 2});
  expect_equal_training({"vgg11", {{"bn", "true"}}, 2, 1});
  expect_equal_training({"resnet50", {{"width", "4"}}, 2, 2});
}

// AlexNet's hybrid: convolutions by samples, the layers behind them by weights.
class Hybrids : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Rules, Hybrids,
                         testing::Values("flatten=batch,fc1=column,fc2=row", "fc1=batch-column,fc2=row,fc3=column"));

TEST_P(Hybrids, LearnAsTheWhole) {
  auto made = make_equal([] { return make({"alexnet-small", {{"dropout", "0"}}, 2, 1}); }, 3);
  const auto batch = batch_of(shape_of("alexnet-small"));
  auto loss = torch::cross_entropy_loss(made[2]->forward(batch.input), batch.target);
  loss.backward();
  run_threads(2, [&](Communicator& comm) {
    torch::set_num_threads(1);
    auto& model = *made[comm.rank()];
    TensorParallel split(
        model, [&](torch::Tensor x) { return model.forward(x); }, comm, GetParam(), batch.input.narrow(0, 0, 1));
    EXPECT_EQ(split.partial().size(), 10u);
    const Cut samples{0, 1, {3, 2}};
    auto own = split.loss(model.forward(local_of(batch.input, samples, comm.rank())),
                          local_of(batch.target, samples, comm.rank()));
    expect_close(own.detach(), loss.detach(), "loss");
    own.backward();
    split.sum_partial_gradients();
    for (const auto& item : made[2]->named_parameters()) {
      expect_close(model.named_parameters()[item.key()].grad(), part_of(split, item.key(), item.value().grad()),
                   item.key());
    }
  });
}

TEST(ZooSplit, EveryModelHasRules) {
  for (const auto& entry : models::models()) {
    auto model = entry.make(shape_of(std::string(entry.name)), {});
    EXPECT_FALSE(TensorRules(default_rules(entry.name, *model)).kinds_in(*model).empty()) << entry.name;
  }
  EXPECT_THROW(default_rules("trawler", *models::make_model("mlp", shape_of("mlp"))), ConfigError);
}

}  // namespace
}  // namespace trireme::parallel::split_test::of_zoo
