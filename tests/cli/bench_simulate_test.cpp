// `trireme bench simulate` as a user runs it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/outcome.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;

TEST(BenchSimulate, OneObjectALine) {
  const Outcome outcome =
      run_trireme("bench simulate --json --growth --cases ring-iteration,halving-doubling-oversubscribed");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::vector<int> nodes;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    nodes.push_back(row["nodes"]);
    EXPECT_TRUE(row["right"]) << line;
    EXPECT_GT(row["simulated_s"], 0);
    EXPECT_GE(row["wall_s"], 0);
    EXPECT_LT(row["rss_mb"], 1024);
  }
  EXPECT_THAT(nodes, testing::ElementsAre(1250, 2500, 5000, 10000, 1024, 2048, 4096, 8192));
}

TEST(BenchSimulate, TheTablePlotsGrowth) {
  const Outcome outcome = run_trireme("bench simulate --cases halving-doubling-oversubscribed");
  EXPECT_EQ(outcome.code, 0);
  for (auto* word : {"case", "simulated s", "wall s", "rss MB", "1024", "8192", "·"}) {
    EXPECT_THAT(outcome.text, HasSubstr(word));
  }
}

TEST(BenchSimulate, AWrongCaseListsAll) {
  EXPECT_TRUE(refuses("bench simulate --cases tree"));
  EXPECT_THAT(run_trireme("bench simulate --cases tree 2>&1").text, HasSubstr("random-flows"));
}

}  // namespace
}  // namespace trireme::test
