#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/outcome.h"

namespace trireme {
namespace {

using nlohmann::json;
using test::refuses;
using test::run_trireme;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainCommand, ShowsTheRing) {
  auto outcome = run_trireme("explain ring --ranks 4");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("all-reduce by ring on 4 ranks"));
  EXPECT_THAT(outcome.text,
              HasSubstr("\nround 1 of 6  Every rank sends to its right neighbour, and what arrives is added.\n"
                        "  0 → 1  chunk 3 (0···)    1 → 2  chunk 0 (·1··)    2 → 3  chunk 1 (··2·)\n"
                        "  3 → 0  chunk 2 (···3)\n"
                        "  chunk     0    1    2    3\n"
                        "  rank 0    0··· 0··· 0··3 0···\n"
                        "  rank 1    ·1·· ·1·· ·1·· 01··\n"
                        "  rank 2    ·12· ··2· ··2· ··2·\n"
                        "  rank 3    ···3 ··23 ···3 ···3\n"));
  EXPECT_THAT(outcome.text, HasSubstr("\nround 6 of 6"));
  EXPECT_THAT(outcome.text, HasSubstr("  rank 3    0123 0123 0123 0123\n\n"));
  EXPECT_THAT(outcome.text, HasSubstr("24 bytes at most by one rank, 96 in all"));
  EXPECT_THAT(outcome.text, HasSubstr("2(P−1) rounds, n/P per round, 2(P−1)n in all"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("\033")));  // colours only at a terminal
}

TEST(ExplainCommand, LeavesOutWhatRepeatsUnlessAsked) {
  auto brief = run_trireme("explain ring --ranks 20"), full = run_trireme("explain ring --ranks 20 --full");
  EXPECT_THAT(brief.text, HasSubstr("go on likewise"));
  EXPECT_THAT(full.text, Not(HasSubstr("…")));
  EXPECT_THAT(full.text, HasSubstr("round 20 of 38"));
}

TEST(ExplainCommand, WritesAPage) {
  auto path = std::filesystem::temp_directory_path() / fmt::format("explain_test_{}.html", getpid());
  auto outcome = run_trireme(fmt::format("explain ring --ranks 4 --html {}", path.string()));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("open it in a browser"));
  std::ifstream file(path);
  std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("<title>all-reduce by ring on 4 ranks</title>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  std::filesystem::remove(path);
}

TEST(ExplainCommand, AsksAuto) {
  auto outcome = run_trireme("explain auto --ranks 8 --bytes 1M --transport tcp --json");
  EXPECT_EQ(outcome.code, 0);
  json answer = json::parse(outcome.text);
  EXPECT_EQ(answer["ranks"], 8);
  EXPECT_EQ(answer["bytes"], 1 << 20);
}

TEST(ExplainCommand, RefusesBadInputInOneLine) {
  for (const char* arguments : {"",
                                "ringo",
                                "ring --ranks 0",
                                "ring --ranks 99999",
                                "ring --ranks x",
                                "ring --collective broadcast",
                                "ring --collective gossip",
                                "ring --root 1",
                                "mst --collective scatter --ranks 4 --root 4",
                                "ring --count x",
                                "ring --count -1",
                                "dissemination --count 1",
                                "ring --ranks 33 --html /dev/null",
                                "ring --ranks 1000",
                                "ring --bytes 1M",
                                "auto --html x.html",
                                "auto --root 1",
                                "auto --collective barrier --bytes 4",
                                "auto --transport pigeon",
                                "ring two"}) {
    EXPECT_TRUE(refuses(std::string("explain ") + arguments))
        << arguments << "\n"
        << run_trireme(std::string("explain ") + arguments + " 2>&1").text;
  }
  EXPECT_THAT(run_trireme("explain ringo 2>&1").text, HasSubstr("there are: "));
  auto outcome = run_trireme("explain ring --html /nowhere/at/all.html 2>&1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("--html: cannot write /nowhere/at/all.html: No such file or directory"));
}

}  // namespace
}  // namespace trireme
