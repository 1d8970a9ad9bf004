#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/models/model.h"

namespace trireme::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A layer in a child, a count that moves in training, one frozen parameter.
torch::jit::Module make_script(const std::string& forward) {
  torch::jit::Module child("child");
  child.register_attribute("training", c10::BoolType::get(), true);
  child.register_parameter("weight", torch::randn({4, 6}), false);
  torch::jit::Module script("script");
  script.register_attribute("training", c10::BoolType::get(), true);
  script.register_module("layer", child);
  script.register_parameter("scale", torch::ones({1}), false);
  script.register_buffer("count", torch::zeros({1}));
  script.define("def forward(self, x):\n" + forward);
  for (const auto& parameter : script.named_parameters()) {
    parameter.value.set_requires_grad(parameter.name == "layer.weight");
  }
  return script;
}

const std::string kCount = "  if self.training:\n    self.count.add_(1)\n";
const std::string kScores = "  return torch.matmul(x.flatten(1), self.layer.weight.t()) * self.scale\n";

class ModelScript : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("trireme_script_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { remove_tree(folder_); }

  std::string save(const std::string& forward) {
    make_script(forward).save(file());
    return file();
  }
  std::string file() const { return folder_ / "m.pt"; }

  template <class Kind>
  std::string error_of(const std::string& name, const Shape& shape, const Arguments& arguments = {}) {
    try {
      make_model(name, shape, arguments);
    } catch (const Kind& error) {
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
      return error.what();
    }
    return "no error";
  }

  const Shape shape_{{2, 3}, 4};

 private:
  std::filesystem::path folder_;
};

// By the class that Python gave them, also where there are several of that name.
TEST_F(ModelScript, EmbeddingsAreKnown) {
  const auto table = [](const char* name, bool learns) {
    torch::jit::Module made(c10::QualifiedName(name), std::make_shared<torch::jit::CompilationUnit>());
    made.register_parameter("weight", torch::randn({4, 6}), false);
    made.attr("weight").toTensor().set_requires_grad(learns);
    return made;
  };
  torch::jit::Module script("script");
  script.register_module("one", table("__torch__.torch.nn.modules.sparse.Embedding", true));
  script.register_module("two", table("__torch__.torch.nn.modules.sparse.___torch_mangle_3.Embedding", true));
  script.register_module("linear", table("__torch__.torch.nn.modules.linear.Linear", true));
  script.define("def forward(self, x):\n  return torch.matmul(x.flatten(1), self.linear.weight.t())\n");
  script.save(file());
  const auto model = make_model(file(), shape_);
  const auto found = model->embeddings();
  ASSERT_EQ(found.size(), 2u);
  const auto parameters = model->named_parameters();
  EXPECT_TRUE(found[0].is_same(parameters["one.weight"]));
  EXPECT_TRUE(found[1].is_same(parameters["two.weight"]));
}

TEST_F(ModelScript, KeepsNamesAndWhatIsFrozen) {
  auto model = make_model(save(kCount + kScores), shape_);
  auto parameters = model->named_parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_TRUE(parameters["layer.weight"].requires_grad());
  EXPECT_FALSE(parameters["scale"].requires_grad());
  ASSERT_TRUE(model->named_buffers().contains("count"));
  EXPECT_EQ(model->named_buffers()["count"].item<float>(), 0);
}

TEST_F(ModelScript, ComputesWithTheParametersItShows) {
  auto model = make_model(save(kCount + kScores), shape_);
  auto weight = model->named_parameters()["layer.weight"];
  auto input = torch::randn({5, 2, 3});
  EXPECT_TRUE(torch::allclose(model->forward(input), torch::matmul(input.flatten(1), weight.t())));
  EXPECT_EQ(model->named_buffers()["count"].item<float>(), 1);
  model->eval();
  model->forward(input).sum().backward();
  EXPECT_EQ(model->named_buffers()["count"].item<float>(), 1);
  ASSERT_TRUE(weight.grad().defined());
  {
    torch::NoGradGuard no_grad;
    weight.zero_();
  }
  EXPECT_EQ(model->forward(input).abs().sum().item<float>(), 0);
  model->to(torch::kDouble);
  EXPECT_EQ(model->forward(input.to(torch::kDouble)).scalar_type(), torch::kDouble);
}

TEST_F(ModelScript, TakesText) {
  auto model = make_model(save("  return torch.zeros([x.size(0), x.size(1), 9]) + self.scale\n"), {{5}, 9, true});
  EXPECT_EQ(model->forward(torch::zeros({2, 5}, torch::kLong)).sizes(), (std::vector<std::int64_t>{2, 5, 9}));
}

TEST_F(ModelScript, SaysWhatDoesNotFit) {
  save(kScores);
  EXPECT_EQ(error_of<ConfigError>(file(), {{2, 3}, 5}),
            "model " + file() + ": gives 1x4 for one sample of 2x3, must give 1x5");
  EXPECT_THAT(error_of<ConfigError>(file(), {{2, 4}, 4}),
              StartsWith("model " + file() + ": fails on a sample of 2x4: "));
  EXPECT_EQ(error_of<ConfigError>(file(), shape_, {{"width", "3"}}),
            "model " + file() + ": takes no arguments, not width");
  save("  return (x, x)\n");
  EXPECT_EQ(error_of<ConfigError>(file(), shape_), "model " + file() + ": gives a Tuple, must give one tensor");
}

TEST_F(ModelScript, LeavesBuffersAsTheyWere) {
  auto model = make_model(save("  self.count.add_(1)\n" + kScores), shape_);
  EXPECT_EQ(model->named_buffers()["count"].item<float>(), 0);
  EXPECT_TRUE(model->is_training());
}

TEST_F(ModelScript, RefusesWhatIsNone) {
  EXPECT_EQ(error_of<ConfigError>(file(), shape_), "model " + file() + ": there is no such file");
  std::ofstream(file()) << "something else";
  EXPECT_THAT(error_of<DataError>(file(), shape_), HasSubstr("m.pt: is not a TorchScript file"));
  save(kScores);
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2);
  EXPECT_THAT(error_of<DataError>(file(), shape_), HasSubstr("m.pt: is not a TorchScript file"));
}

}  // namespace
}  // namespace trireme::models
