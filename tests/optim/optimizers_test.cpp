// Every optimizer of the list beside its formula, and what holds for all of them.
#include "trireme/optim/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/optim/textbook.h"
#include "trireme/base/error.h"
#include "trireme/optim/whole_tensor.h"

namespace trireme::optim {
namespace {

using ::testing::HasSubstr;

// A tensor that is stepped: weights and quantities.
struct Stepped {
  explicit Stepped(const OptimizerKind& kind, const Options& options, std::size_t n)
      : rule(make_rule(kind, options)), w(numbers(n, 1)) {
    for (const auto& one : rule->quantities()) kept.emplace_back(n, one.first);
  }
  Piece all(const std::vector<float>& g) {
    Piece piece{.w = w.data(), .g = g.data(), .kept = {}, .n = w.size()};
    for (std::size_t k = 0; k < kept.size(); ++k) piece.kept[k] = kept[k].data();
    return piece;
  }
  void step(const std::vector<float>& g, double lr, std::uint64_t t, bool layer = true) {
    rule->begin(lr, t);
    step_tensor(
        *rule, all(g), layer, [](std::int64_t n, std::int64_t, const auto& f) { f(0, n); }, [](std::span<double>) {});
  }

  MadeRule rule;
  std::vector<float> w;
  std::vector<std::vector<float>> kept;
};

std::vector<float> gradient_of(std::size_t n, std::uint64_t step) {
  auto g = numbers(n, 100 + step);
  for (std::size_t i = 0; i < n; i += 7) g[i] = 0;  // as of an embedding's other rows
  return g;
}

class Rules : public ::testing::TestWithParam<const OptimizerKind*> {};

TEST_P(Rules, AreTheirFormulas) {
  for (const auto& options : variants(*GetParam())) {
    for (const std::size_t n : {1, 7, 16, 513, 4096, 9001}) {
      for (const bool layer : {true, false}) {
        Stepped ours(*GetParam(), options, n);
        Textbook book{std::string(GetParam()->name), options, {ours.w.begin(), ours.w.end()}, layer};
        const int steps = n < 1000 ? 20 : 5;
        for (int step = 1; step <= steps; ++step) {
          const auto g = gradient_of(n, static_cast<std::uint64_t>(step));
          const double lr = 0.02 / (1 + 0.1 * step);
          ours.step(g, lr, static_cast<std::uint64_t>(step), layer);
          book.step({g.begin(), g.end()}, lr);
        }
        double worst = 0;
        for (std::size_t i = 0; i < n; ++i)
          worst = std::max(worst, std::abs(static_cast<double>(ours.w[i]) - book.w[i]));
        EXPECT_LT(worst, 3e-6) << GetParam()->name << ", " << n << " elements, " << options.weight_decay;
      }
    }
  }
}

TEST_P(Rules, TakeAnyPiecesAndGiveTheSameBits) {
  if (!GetParam()->by_element) return;
  constexpr std::size_t kCount = 3001;
  std::mt19937 random(5);
  for (const auto& options : variants(*GetParam())) {
    Stepped whole(*GetParam(), options, kCount), cut(*GetParam(), options, kCount);
    for (std::uint64_t step = 1; step <= 4; ++step) {
      const auto g = gradient_of(kCount, step);
      whole.step(g, 0.01, step);
      cut.rule->begin(0.01, step);
      for (std::size_t at = 0; at < kCount;) {
        const std::size_t n = std::min<std::size_t>(kCount - at, 1 + random() % 700);
        cut.rule->apply(cut.all(g).part(at, n));
        at += n;
      }
    }
    EXPECT_EQ(cut.w, whole.w);
    EXPECT_EQ(cut.kept, whole.kept);
  }
}

TEST_P(Rules, SayWhatTheyKeep) {
  for (const auto& options : variants(*GetParam())) {
    const auto rule = make_rule(*GetParam(), options);
    EXPECT_LE(rule->quantities().size(), kMostQuantities);
    EXPECT_EQ(rule->measures(), !GetParam()->by_element);
    std::set<std::string_view> names;
    for (const auto& one : rule->quantities()) names.insert(one.name);
    EXPECT_EQ(names.size(), rule->quantities().size()) << "two of one name";
    EXPECT_FALSE(names.contains("step")) << "what checkpoints call the number of steps";
  }
}

// What sparse pushes rest on: adagrad and sgd without memory or decay leave alone whatever has no gradient.
TEST_P(Rules, AtARateOfZeroLeaveWeightsAlone) {
  Stepped one(*GetParam(), {}, 100);
  const auto before = one.w;
  one.step(gradient_of(100, 1), 0, 1);
  EXPECT_EQ(one.w, before);
}

std::vector<const OptimizerKind*> kinds() {
  std::vector<const OptimizerKind*> all;
  for (const auto& kind : optimizers()) all.push_back(&kind);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Rules, ::testing::ValuesIn(kinds()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(Rmsprop, CenteredOnEqualGradientsIsFinite) {
  Stepped one(*find_optimizer("rmsprop"), {.alpha = 0.9, .centered = true}, 64);
  const std::vector<float> g(64, 0.3f);
  for (std::uint64_t step = 1; step < 400; ++step) one.step(g, 1e-6, step);
  for (const float w : one.w) EXPECT_TRUE(std::isfinite(w));
}

TEST(Optimizers, OptionsThatCannotBeAreNamed) {
  const auto error = [](std::string_view name, const Options& options) -> std::string {
    try {
      make_rule(*find_optimizer(name), options);
    } catch (const ConfigError& wrong) {
      return wrong.what();
    }
    return "";
  };
  EXPECT_EQ(error("rmsprop", {.alpha = 1}), "optimizer rmsprop: alpha must be from 0 to below 1, not 1");
  EXPECT_EQ(error("adagrad", {.lr_decay = -1}), "optimizer adagrad: lr decay must be at least 0, not -1");
  EXPECT_EQ(error("adagrad", {.initial_accumulator = std::nan("")}),
            "optimizer adagrad: the initial accumulator must be at least 0, not nan");
  EXPECT_EQ(error("sgd", {.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
            "optimizer sgd: nesterov goes without dampening");
  EXPECT_THAT(error("adam", {.nesterov = true}), HasSubstr("nesterov is for sgd alone"));
}

TEST(Optimizers, AreListedByWhatTheyTake) {
  EXPECT_EQ(names_with(&OptimizerKind::momentum), "sgd, rmsprop or lars");
  EXPECT_EQ(names_with(&OptimizerKind::accumulates), "adagrad");
  EXPECT_EQ(find_optimizer("lbfgs"), nullptr);
}

}  // namespace
}  // namespace trireme::optim
