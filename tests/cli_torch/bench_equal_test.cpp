// The fast core of `trireme bench equal`: some of its combinations, over and over the same.
#include <cstdio>

#include "tests/cli_torch/training.h"
#include "tests/run_command.h"

namespace trireme::test {
namespace {

struct EqualCase {
  int seed, number;
};

void PrintTo(const EqualCase& which, std::ostream* to) { *to << which.seed << "_" << which.number; }

class BenchEqual : public ::testing::TestWithParam<EqualCase> {};

nlohmann::json equal_line(const EqualCase& which) {
  const auto command = fmt::format("{} bench equal --json --models mlp --seed {} --only {} 2>&1", TRIREME_MAIN_PROGRAM,
                                   which.seed, which.number);
  std::istringstream out(run_command(command).text);
  std::string first;
  std::getline(out, first);
  return nlohmann::json::parse(first, nullptr, /*allow_exceptions=*/false);
}

TEST_P(BenchEqual, EndsAsOneWorkerDoes) {
  const auto line = equal_line(GetParam());
  ASSERT_TRUE(line.is_object());
  EXPECT_EQ(line["verdict"], "equal") << line.dump(2);
  EXPECT_LE(line["off_by"], line["bound"]);
}

INSTANTIATE_TEST_SUITE_P(Each, BenchEqual,
                         ::testing::Values(EqualCase{3, 11}, EqualCase{3, 5}, EqualCase{3, 6}, EqualCase{3, 8},
                                           EqualCase{3, 9}, EqualCase{4, 3}, EqualCase{4, 5}, EqualCase{5, 0},
                                           EqualCase{5, 3}, EqualCase{5, 8}));

}  // namespace
}  // namespace trireme::test
