#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/models/model.h"
#include "trireme/nn/dropout.h"

namespace trireme::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool is_text(std::string_view name) { return name == "lstm-lm" || name == "gpt-small"; }

// The smallest data each kind of model is tried on.
Shape small_shape(std::string_view name) {
  if (is_text(name)) return {{8}, 11, true};
  return {{3, 16, 16}, 10};
}

// Wide models are made narrow where they can be.
Arguments small_arguments(std::string_view name) {
  if (name == "resnet18" || name == "resnet50") return {{"width", "16"}};
  if (name == "resnet32") return {{"depth", "14"}};
  if (name == "mlp-wide") return {{"width", "256"}};
  if (name == "local-cnn") return {{"width", "16"}};
  return {};
}

std::shared_ptr<Model> make_small(std::string_view name) {
  torch::manual_seed(1);
  return make_model(name, small_shape(name), small_arguments(name));
}

torch::Tensor samples(const Shape& shape, std::int64_t count) {
  std::vector<std::int64_t> size = shape.input;
  size.insert(size.begin(), count);
  return shape.text ? torch::randint(shape.classes, size, torch::kLong) : torch::randn(size);
}

torch::Tensor loss_of(Model& model, const Shape& shape, const torch::Tensor& input, const torch::Tensor& targets) {
  nn::set_random(7);
  return torch::cross_entropy_loss(model.forward(input).view({-1, shape.classes}), targets.view({-1}));
}

std::int64_t count(const std::shared_ptr<Model>& model) {
  std::int64_t sum = 0;
  for (const auto& parameter : model->parameters()) sum += parameter.numel();
  return sum;
}

std::string error_of(std::string_view name, const Shape& shape, const Arguments& arguments = {}) {
  try {
    make_model(name, shape, arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

class Models : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Models, GiveScoresOfTheRightShape) {
  Shape shape = small_shape(GetParam());
  auto scores = make_small(GetParam())->forward(samples(shape, 2));
  auto expected = shape.text ? std::vector<std::int64_t>{2, 8, 11} : std::vector<std::int64_t>{2, 10};
  EXPECT_EQ(scores.sizes().vec(), expected);
}

TEST_P(Models, LearnInEveryParameter) {
  Shape shape = small_shape(GetParam());
  auto model = make_small(GetParam());
  auto input = samples(shape, 2);
  auto targets = shape.text ? samples(shape, 2) : torch::randint(shape.classes, {2}, torch::kLong);
  auto loss = loss_of(*model, shape, input, targets);
  loss.backward();
  double square = 0;
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    double sum = item.value().grad().square().sum().item<double>();
    EXPECT_TRUE(std::isfinite(sum)) << item.key();
    if (item.value().dim() > 1) {
      EXPECT_GT(sum, 0) << item.key();
    }
    square += sum;
  }
  {
    torch::NoGradGuard no_grad;
    // By the gradient such a step takes a fiftieth off the loss.
    double lr = 0.02 * loss.item<double>() / square;
    for (auto& parameter : model->parameters()) parameter.sub_(parameter.grad(), lr);
  }
  EXPECT_LT(loss_of(*model, shape, input, targets).item<double>(), loss.item<double>());
}

TEST_P(Models, EvaluateDeterministically) {
  auto model = make_small(GetParam());
  auto input = samples(small_shape(GetParam()), 2);
  model->eval();
  torch::NoGradGuard no_grad;
  auto first = model->forward(input);
  nn::set_random(99);
  EXPECT_TRUE(torch::equal(first, model->forward(input)));
}

// Every parameter and buffer belongs to a piece; cut anywhere, the pieces give what the whole gives.
TEST_P(Models, AreRowsOfPieces) {
  auto model = make_small(GetParam());
  auto chain = model->chain();
  EXPECT_GE(chain.size(), 3u);
  EXPECT_EQ(nn::parameters_of(*model, chain, 0, chain.size()).size(), model->named_parameters().size());
  EXPECT_EQ(nn::buffers_of(*model, chain, 0, chain.size()).size(), model->named_buffers().size());
  model->eval();
  torch::NoGradGuard no_grad;
  auto input = samples(small_shape(GetParam()), 2);
  auto whole = model->forward(input);
  for (std::size_t cut = 1; cut < chain.size(); ++cut) {
    auto values = nn::run(chain, {input}, 0, cut);
    for (const auto& value : values) EXPECT_EQ(value.size(0), 2) << chain[cut].name;
    EXPECT_TRUE(torch::equal(whole, nn::run(chain, values, cut, chain.size()).at(0))) << chain[cut].name;
  }
}

TEST_P(Models, HaveTheSameWeightsForTheSameSeed) {
  auto first = make_small(GetParam())->named_parameters(), second = make_small(GetParam())->named_parameters();
  ASSERT_EQ(first.size(), second.size());
  for (const auto& item : first) EXPECT_TRUE(torch::equal(item.value(), second[item.key()])) << item.key();
}

// The defaults in the table are those of the code: giving them changes nothing. One that is not there is refused, and
// those that are get listed.
TEST_P(Models, SayTheirArgumentsAndDefaults) {
  const Entry& entry = *std::ranges::find(models(), GetParam(), &Entry::name);
  Arguments arguments;
  std::istringstream words{std::string(entry.arguments)};
  for (std::string word; words >> word;) {
    arguments[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  Shape shape = small_shape(entry.name);
  EXPECT_EQ(count(make_model(entry.name, shape, arguments)), count(make_model(entry.name, shape)));
  arguments["sails"] = "3";
  std::string error = error_of(entry.name, shape, arguments);
  EXPECT_THAT(error, Not(HasSubstr("\n")));
  for (const auto& [name, value] : arguments) EXPECT_THAT(error, HasSubstr(name));
}

TEST_P(Models, RefuseDataTheyDoNotFit) {
  std::string name(GetParam());
  Shape wrong = is_text(name) ? Shape{{3, 16, 16}, 10} : Shape{{8}, 11, true};
  EXPECT_THAT(error_of(name, wrong), HasSubstr("model " + name + ": takes"));
  Shape without_classes = small_shape(name);
  without_classes.classes = 0;
  EXPECT_THAT(error_of(name, without_classes), HasSubstr("class"));
  Shape huge = small_shape(name);
  for (auto& size : huge.input) size = std::int64_t{1} << 40;
  EXPECT_THAT(error_of(name, huge), HasSubstr("model " + name));
}

struct Known {
  std::string_view name;
  Shape shape;
  Arguments arguments;
  std::int64_t parameters;
};

// Published counts; for text by the formulas 12·L·w² + 13·L·w + (vocabulary + length)·w + 2·w and, of an LSTM layer,
// 8·w² + 8·w.
TEST_P(Models, HaveTheKnownNumberOfParameters) {
  const Known known[] = {
      {"mlp", {{1, 28, 28}, 10}, {}, 669'706},
      {"mlp", {{784}, 10}, {}, 669'706},
      {"mlp-wide", {{1, 28, 28}, 10}, {}, 5'824'522},
      {"lenet", {{1, 28, 28}, 10}, {}, 61'706},
      // 5²·w·(c + w) + 2·w, at each place 9·w·w + 9·w·w/2 + w + w/2, and (w/2 · places + 1)·classes.
      {"local-cnn", {{3, 32, 32}, 10}, {}, 25 * 32 * 35 + 64 + 64 * (9 * 32 * 48 + 48) + (16 * 64 + 1) * 10},
      {"local-cnn", {{1, 28, 28}, 10}, {}, 25 * 32 * 33 + 64 + 49 * (9 * 32 * 48 + 48) + (16 * 49 + 1) * 10},
      {"vgg11", {{3, 32, 32}, 10}, {}, 9'225'610},
      {"vgg11", {{3, 32, 32}, 10}, {{"bn", "true"}}, 9'231'114},
      {"resnet18", {{3, 224, 224}, 1000}, {}, 11'689'512},
      {"resnet18", {{3, 32, 32}, 10}, {}, 11'173'962},
      {"resnet32", {{3, 32, 32}, 10}, {}, 464'154},
      {"resnet50", {{3, 224, 224}, 1000}, {}, 25'557'032},
      {"gpt-small", {{64}, 100, true}, {}, 12 * 4 * 256 * 256 + 13 * 4 * 256 + 164 * 256 + 2 * 256},
      {"gpt-small", {{64}, 100, true}, {{"tied", "false"}}, 12 * 4 * 256 * 256 + 13 * 4 * 256 + 264 * 256 + 2 * 256},
      {"lstm-lm", {{64}, 100, true}, {}, 2 * (8 * 256 * 256 + 8 * 256) + 100 * 256 + 100},
      {"lstm-lm", {{64}, 100, true}, {{"tied", "false"}}, 2 * (8 * 256 * 256 + 8 * 256) + 2 * 100 * 256 + 100},
  };
  for (const Known& model : known) {
    if (model.name == GetParam()) {
      EXPECT_EQ(count(make_model(model.name, model.shape, model.arguments)), model.parameters);
    }
  }
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : models()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, Models, ::testing::ValuesIn(names()), [](const auto& entry) {
  std::string name(entry.param);
  std::erase(name, '-');
  return name;
});

// Sizes, channels and classes other than the usual ones, small and large stems.
TEST(ModelShapes, AreFree) {
  torch::NoGradGuard no_grad;
  const Shape shapes[] = {{{1, 28, 28}, 10}, {{2, 20, 31}, 3}, {{3, 70, 65}, 4}};
  for (std::string_view name : {"mlp", "lenet", "alexnet-small", "local-cnn", "resnet18", "resnet32"}) {
    for (const Shape& shape : shapes) {
      auto model = make_model(name, shape, small_arguments(name));
      EXPECT_EQ(model->forward(samples(shape, 2)).sizes(), (std::vector<std::int64_t>{2, shape.classes})) << name;
    }
  }
  Shape fashion{{1, 28, 28}, 10};
  EXPECT_EQ(make_model("vgg11", fashion)->forward(samples(fashion, 1)).size(1), 10);
}

TEST(ModelErrors, AreOneLine) {
  Shape image{{1, 28, 28}, 10};
  EXPECT_EQ(error_of("lenett", image),
            "no model is called lenett; did you mean lenet? there are mlp, mlp-wide, lenet, alexnet-small, local-cnn, "
            "vgg11, resnet18, resnet32, resnet50, lstm-lm, gpt-small, and TorchScript files (*.pt)");
  EXPECT_EQ(error_of("lenet", {{784}, 10}), "model lenet: takes images (channels x height x width), not 784");
  EXPECT_EQ(error_of("lenet", {{1, 8, 28}, 10}), "model lenet: takes images of at least 12x12 pixels, not 8x28");
  EXPECT_EQ(error_of("lenet", image, {{"width", "3"}}), "model lenet: takes no arguments, not width");
  EXPECT_EQ(error_of("mlp", image, {{"widht", "3"}}),
            "model mlp: has no argument widht; did you mean width? it takes width, layers, dropout");
  EXPECT_EQ(error_of("mlp", image, {{"width", "3x"}}), "model mlp: width=3x must be a whole number from 1 to 1048576");
  EXPECT_EQ(error_of("mlp", image, {{"dropout", "1"}}), "model mlp: dropout=1 must be a number from 0 to below 1");
  EXPECT_EQ(error_of("vgg11", image, {{"bn", "yes"}}), "model vgg11: bn=yes must be true or false");
  EXPECT_EQ(error_of("resnet32", image, {{"depth", "33"}}), "model resnet32: depth=33 must be 6n + 2: 20, 32, 44, 56");
  EXPECT_EQ(error_of("gpt-small", {{8}, 11, true}, {{"heads", "3"}}),
            "model gpt-small: width=256 must be a multiple of heads=3");
}

// Whose rows a batch names, and what else uses them.
TEST(ModelText, EmbeddingsAreKnown) {
  for (std::string_view name : {"gpt-small", "lstm-lm"}) {
    for (const char* tied : {"true", "false"}) {
      auto model = make_model(name, {{8}, 11, true}, {{"tied", tied}});
      const auto tables = model->embeddings();
      ASSERT_EQ(tables.size(), 1u) << name;
      EXPECT_EQ(tables[0].size(0), 11) << name;
      int pieces = 0;
      const auto chain = model->chain();
      for (std::size_t k = 0; k < chain.size(); ++k) {
        for (const auto& [at, used] : nn::parameters_of(*model, chain, k, k + 1)) pieces += used.is_same(tables[0]);
      }
      EXPECT_EQ(pieces, std::string_view(tied) == "true" ? 2 : 1) << name;
    }
  }
  EXPECT_TRUE(make_model("lenet", {{1, 28, 28}, 10})->embeddings().empty());
}

// No place sees a later one.
TEST(ModelText, IsCausal) {
  torch::NoGradGuard no_grad;
  Shape shape{{8}, 11, true};
  for (std::string_view name : {"gpt-small", "lstm-lm"}) {
    auto model = make_model(name, shape);
    model->eval();
    auto tokens = samples(shape, 1), other = tokens.clone();
    other[0][5] = (other[0][5] + 1) % 11;
    auto before = model->forward(tokens), after = model->forward(other);
    EXPECT_TRUE(torch::allclose(before.slice(1, 0, 5), after.slice(1, 0, 5))) << name;
    EXPECT_FALSE(torch::allclose(before.slice(1, 5), after.slice(1, 5))) << name;
  }
}

}  // namespace
}  // namespace trireme::models
