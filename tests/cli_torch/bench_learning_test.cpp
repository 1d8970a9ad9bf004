// The fast core of `trireme bench learning`: with its defaults nothing leaves a small model at chance.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace bench_learning_test {

class BenchLearning : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, BenchLearning, ::testing::Values("strategies", "codecs", "pipelines", "optimizers"),
                         [](const auto& test) { return test.param; });

TEST_P(BenchLearning, NothingIsAtChance) {
  Started program({"bench", "learning", "--models", "mlp", "--of", GetParam(), "--steps", "80", "--json"});
  EXPECT_EQ(program.wait(280), 0) << program.err();
  const auto rows = json_lines(program.out());
  EXPECT_GE(rows.size(), 5u);
  for (const auto& row : rows) {
    EXPECT_NE(row["verdict"], "too short") << row;
    if (row["verdict"] == "refused") continue;
    EXPECT_GT(row["accuracy"].get<double>(), 0.3) << row;  // one of ten classes
  }
}

TEST(BenchLearningFlags, SlipsAreNamed) {
  EXPECT_THAT(run({"bench", "learning", "--of", "codes"}).err, HasSubstr("'codes' is not one of"));
  EXPECT_THAT(run({"bench", "learning", "--models", "lenett"}).err, HasSubstr("lenett"));
  EXPECT_THAT(run({"bench", "learning", "--only", "nothing"}).err, HasSubstr("'nothing'"));
}

}  // namespace bench_learning_test
}  // namespace trireme::test
