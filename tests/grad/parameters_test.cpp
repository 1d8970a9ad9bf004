#include "trireme/grad/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::grad {
namespace {

using ::testing::ElementsAre;

// One layer by two names, and one that is frozen.
struct Shared : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(3, 2));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(2));
  torch::nn::Linear again = register_module("again", first);
  torch::nn::Linear frozen = register_module("frozen", torch::nn::Linear(2, 2));
  Shared() {
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  }
};

std::vector<std::string> names_of(const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const auto& one : parameters) names.push_back(one.name);
  return names;
}

TEST(Parameters, ThatLearnAreThereOnceInTheModelsOrder) {
  const Shared model;
  EXPECT_THAT(names_of(learning(model)), ElementsAre("first.weight", "first.bias", "norm.weight", "norm.bias"));
}

TEST(Parameters, EverythingIsThereByEveryName) {
  const Shared model;
  EXPECT_THAT(
      names_of(everything(model)),
      ElementsAre("first.weight", "first.bias", "norm.weight", "norm.bias", "again.weight", "again.bias",
                  "frozen.weight", "frozen.bias", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"));
}

}  // namespace
}  // namespace trireme::grad
