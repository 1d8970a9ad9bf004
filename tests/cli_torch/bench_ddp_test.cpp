// trireme bench ddp: what it prints, and what it refuses. How fast anything is is no test's business.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

TEST(BenchDdp, OneObjectPerLineWithTheKeysPromised) {
  auto out = run_well({"bench", "ddp", "--models", "lenet:4", "--workers", "1,2", "--rounds", "1", "--json"}).out;
  std::istringstream lines(out);
  int workers = 0;
  for (std::string line; std::getline(lines, line);) {
    auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["peer"], "trireme");
    EXPECT_EQ(row["model"], "lenet");
    EXPECT_EQ(row["workers"], ++workers);
    EXPECT_EQ(row["batch"], 4);
    for (const char* key : {"step_ms", "barrier_ms", "nosync_ms"}) EXPECT_GT(row[key], 0) << key;
  }
  EXPECT_EQ(workers, 2);
}

TEST(BenchDdp, RefusesInOneLine) {
  auto refused = [](const Words& words, const std::string& part) {
    Words all{"bench", "ddp"};
    all.insert(all.end(), words.begin(), words.end());
    expect_refusal(run(all), 2, part);
  };
  refused({"--models", "lent"}, "'lent' is not one of");
  refused({"--models", "lenet:0"}, "--models");
  refused({"--peers", "tensorflow"}, "'tensorflow' is not one of");
  refused({"--exchange", "sideways"}, "sideways");
  refused({"--workers", "0"}, "--workers");
  refused({"--rounds", "0"}, "--rounds");
  refused({"--bucket-plan", "foo"}, "foo");
}

}  // namespace
}  // namespace trireme::test
