// `trireme bench ops` and `trireme explain conv` as a user runs them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/outcome.h"

namespace trireme::test {
namespace operators_test {

using testing::HasSubstr;

TEST(BenchOps, OneObjectALine) {
  const Outcome outcome = run_trireme("bench ops --shape 2x8x9x9,16x3x3,padding=1 --threads 1 --rounds 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::set<std::pair<std::string, std::string>> seen;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["op"], "conv");
    EXPECT_EQ(row["shape"], "2x8x9x9,16x3x3,padding=1");
    EXPECT_EQ(row["peer"], "trireme");
    for (const char* number : {"us_p50", "gflops", "of_peak"}) EXPECT_GT(row[number], 0) << line;
    EXPECT_GE(row["bytes_workspace"], 0);
    seen.emplace(row["pass"].get<std::string>(), row["implementation"].get<std::string>());
  }
  EXPECT_EQ(seen.size(), 3u * 4u) << "passes, algorithms but the reference";
}

TEST(BenchOps, AModelsLayers) {
  const Outcome outcome =
      run_trireme("bench ops --model lenet --batch 1 --threads 1 --rounds 1 --implementations im2col");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"1x1x28x28,6x5x5,padding=2", "1x6x14x14,16x5x5", "weights", "all layers and passes"}) {
    EXPECT_THAT(outcome.text, HasSubstr(part));
  }
}

TEST(BenchOps, WhatCannotBeIsRefused) {
  EXPECT_TRUE(refuses("bench ops --model nothing"));
  EXPECT_TRUE(refuses("bench ops --shape 1x2x3"));
  EXPECT_TRUE(refuses("bench ops --shape 1x2x3x3,2x1x1 --batch 4"));
  EXPECT_TRUE(refuses("bench ops --implementations magic"));
  EXPECT_TRUE(refuses("bench ops --threads 0"));
  EXPECT_TRUE(refuses("bench ops --peers somebody"));
}

TEST(ExplainConv, StepsAndCounts) {
  const Outcome outcome = run_trireme("explain conv --algorithm winograd --input 4x4 --kernel 3x3");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("by 16 multiplications; the definition takes 36"));
  EXPECT_THAT(run_trireme("explain conv --algorithm im2col --input 3x3 --kernel 2x2").text, HasSubstr("145.06 108.06"));
  EXPECT_TRUE(refuses("explain conv --algorithm none"));
  EXPECT_TRUE(refuses("explain conv --input 4xa"));
  EXPECT_TRUE(refuses("explain conv --ranks 3"));
  EXPECT_TRUE(refuses("explain ring --kernel 3x3"));
}

}  // namespace operators_test
}  // namespace trireme::test
