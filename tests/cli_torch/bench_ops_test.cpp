// trireme bench ops --peers libtorch: every family beside LibTorch's operator. How fast anything is is no test's
// business.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace bench_ops_test {

// By family and peer, its passes.
using PassesSeen = std::map<std::string, std::map<std::string, std::set<std::string>>>;

void add_passes(const Words& words, PassesSeen& seen) {
  const auto out =
      run_well(Words{"bench", "ops", "--threads", "1", "--rounds", "1", "--peers=libtorch", "--json"} + words).out;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_GT(row["us_p50"], 0);
    EXPECT_EQ(row.contains("version"), row["peer"] == "libtorch");
    seen[row["op"].get<std::string>()][row["peer"].get<std::string>()].insert(row["pass"].get<std::string>());
  }
}

TEST(BenchOps, BesideLibTorch) {
  PassesSeen seen;
  add_passes({"--model", "gpt-small", "--batch", "1", "--length", "5"}, seen);
  add_passes({"--model", "lenet", "--batch", "2"}, seen);
  for (const auto& [op, shape] : {std::pair{"lstm", "3x4x5,6,layers=2"},
                                  {"gru", "3x4x5,6"},
                                  {"batch-norm", "11x3,add,relu"},
                                  {"mean-pool", "2x3x4x4,4x4"},
                                  {"softmax", "3x7"}}) {
    add_passes({"--op", op, "--shape", shape}, seen);
  }
  EXPECT_EQ(seen.size(), 14u) << "families";
  for (auto& [op, passes] : seen) {
    EXPECT_EQ(passes["libtorch"], passes["trireme"]) << op;
    EXPECT_GE(passes["libtorch"].size(), 2u) << op;
  }
  expect_refusal(run({"bench", "ops", "--peers", "libtorch,somebody"}), 2, "'somebody' is not one of");
}

}  // namespace bench_ops_test
}  // namespace trireme::test
