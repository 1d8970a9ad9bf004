#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/cli/outcome.h"
#include "trireme/collective/schedule.h"
#include "trireme/mesh/schedule.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using test::Outcome;

Outcome check(const std::string& arguments) { return test::run_trireme("check " + arguments + " 2>&1"); }

TEST(CheckCommand, PrintsATableOfAllAlgorithms) {
  const Outcome outcome = check("--ranks 1..5,9");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, StartsWith("collective      algorithm                ranks"));
  EXPECT_THAT(outcome.text, HasSubstr("all-reduce      ring                     1..5,9"));
  std::size_t proven = 0;
  for (std::size_t at = 0; (at = outcome.text.find("  proven\n", at)) != std::string::npos; ++at) ++proven;
  EXPECT_EQ(proven, algorithms().size() + pipelines::kinds().size());
  EXPECT_THAT(outcome.text,
              HasSubstr("pipeline        1f1b                     1..5,9       1..24 micro-batches     144"));
  EXPECT_THAT(outcome.text, HasSubstr("\n5 pipeline schedules proven in 1152 cases\n"));
}

TEST(CheckCommand, GivesOneJsonObjectPerAlgorithm) {
  const Outcome outcome = check("--json --collective allreduce -n 4");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_EQ(object.at("collective"), "all-reduce");
    EXPECT_EQ(object.at("proven"), true);
    EXPECT_EQ(object.at("ranks"), std::vector<int>{4});
    EXPECT_EQ(object.at("cases"), 5);
    if (object.at("algorithm") == "ring") {
      EXPECT_EQ(object.at("rounds"), 6);
    }
  }
  EXPECT_EQ(count, algorithms_for(Collective::all_reduce).size());
}

TEST(CheckCommand, GivesOneJsonObjectPerPipeline) {
  const Outcome outcome = check("--json --algorithm pipeline:interleaved -n 3..40");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const auto object = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(object.at("pipeline"), "interleaved");
  EXPECT_EQ(object.at("proven"), true);
  EXPECT_EQ(object.at("stages").size(), 14u);  // up to 16
  EXPECT_EQ(object.at("cases"), 14 * 24 * 4);
}

TEST(CheckCommand, ChoosesByName) {
  EXPECT_THAT(check("--ranks 3 --algorithm ring").text, HasSubstr("3 algorithms proven"));
  EXPECT_THAT(check("--ranks 3 --algorithm halving_doubling").text, HasSubstr("1 algorithms proven in 5 cases"));
  EXPECT_THAT(check("--ranks 3 --collective barrier --algorithm tree").text, HasSubstr("1 algorithms proven"));
}

TEST(CheckCommand, MakesRandomCallsOverShortLivedGroups) {
  for (const std::string where : {"--transport shm --ranks 2,5 --count 400", "--transport inproc --ranks 3 --count 200",
                                  "--transport tcp --ranks 3 --count 40", "--ranks 7 --count 100 --seed 9"}) {
    const Outcome outcome = check("--random " + where);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.text,
                testing::MatchesRegex("[0-9]+ random collectives over [0-9]+ short-lived groups, .* ranks, "
                                      ".*: [0-9]+ elements, none wrong; seed [0-9]+, [0-9]+ s\n"));
  }
}

TEST(CheckCommand, CountsRandomCallsInJson) {
  const auto seen = [](const std::string& seed) {
    return nlohmann::json::parse(check("--random --json --ranks 2..4 --count 90 --seed " + seed).text);
  };
  auto first = seen("3"), again = seen("3");
  EXPECT_GE(first.at("calls"), 90);
  EXPECT_GT(first.at("groups"), 10);
  EXPECT_EQ(first.at("wrong"), 0);
  EXPECT_EQ(first.at("seed"), 3);
  for (auto* run : {&first, &again}) run->erase("seconds");
  EXPECT_EQ(first, again);  // the same calls are drawn
  EXPECT_NE(first.at("elements"), seen("4").at("elements"));
}

TEST(CheckCommand, AnswersBadInputWithOneLine) {
  const auto expect = [](const std::string& arguments, const std::string& text) {
    const Outcome outcome = check(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.text, StartsWith("trireme: "));
    EXPECT_THAT(outcome.text, HasSubstr(text));
    EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
  };
  expect("--ranks 0", "--ranks: '0'");
  expect("--ranks 1..x", "--ranks: 'x'");
  expect("--ranks 1000", "--ranks: 1000 is too many; up to 128 are checked");
  expect("--algorithm rung", "no algorithm 'rung'; did you mean ring? there are: direct,");
  expect("--collective all", "unknown collective 'all'");
  expect("--collective barrier --algorithm ring", "no algorithm 'ring' for barrier");
  expect("--algorithm pipeline:2f2b", "no pipeline '2f2b'; there are: gpipe, 1f1b,");
  expect("--collective barrier --algorithm pipeline:1f1b", "--collective: has no meaning with a pipeline");
  expect("--fast", "--fast");
  expect("--count 5", "--count: is for random collectives; add --random");
  expect("--random --algorithm ring", "--algorithm: --random draws from all of them");
  expect("--random --ranks 1", "--ranks: '1'");
  expect("--random --ranks 65", "--ranks: 65 is too many; up to 64 make random calls");
  expect("--random --count 0", "--count: '0'");
  expect("--random --transport pigeon", "--transport");
}

}  // namespace
}  // namespace trireme
