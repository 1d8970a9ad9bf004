#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/help_lines.h"
#include "tests/cli/outcome.h"
#include "tests/typos.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/command.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;

// The commands of this program; those of the other are tested beside it.
std::vector<std::string> own_commands() {
  std::vector<std::string> all;
  const std::vector<std::string> others{"train", "eval", "predict", "compare", "profile", "data"};
  for (const auto& name : commands_in(run_trireme("--help").text)) {
    if (std::find(others.begin(), others.end(), name) == others.end()) all.push_back(name);
  }
  for (const auto name : cli::kOwnBenchmarks) all.push_back("bench " + std::string(name));
  return all;
}

TEST(Help, KeepsToTheWidth) {
  auto commands = own_commands();
  ASSERT_GT(commands.size(), 12U);
  commands.push_back("");
  expect_help_fits(TRIREME_PROGRAM, commands);
}

TEST(Help, HasAllOfAnOptionAtAnyWidth) {
  for (const std::string width : {"40", "120", "7", "100000", "x"}) {
    const auto help = output_of("COLUMNS=" + width + " " + TRIREME_PROGRAM + " plan --help");
    EXPECT_THAT(help, HasSubstr("--nproc-per-node"));
    EXPECT_THAT(help, HasSubstr("tensor"));
    EXPECT_THAT(help, HasSubstr("example: trireme plan"));
  }
}

// Every flag of every command, a letter short.
TEST(Help, AMistypedFlagNamesTheNearest) {
  for (const auto& command : own_commands()) {
    const auto help = run_trireme(command + " --help").text;
    std::vector<std::string> flags;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find("--");
      if (!line.starts_with("  -") || at == line.npos) continue;
      const auto end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      if (auto flag = line.substr(at + 2, end == line.npos ? end : end - at - 2); flag.size() > 3)
        flags.push_back(flag);
    }
    ASSERT_FALSE(flags.empty()) << command;
    for (const auto& flag : {flags.front(), flags.back()}) {
      auto typo = flag;
      typo.erase(typo.size() / 2, 1);
      const auto outcome = run_trireme(command + " --" + typo + " 3 2>&1");
      EXPECT_EQ(outcome.code, 2) << command << " --" << typo;
      const auto near = suggested(outcome.text);
      ASSERT_THAT(near, testing::StartsWith("--")) << command << " --" << typo << ": " << outcome.text;
      EXPECT_LE(edit_distance(typo, near.substr(2)), edit_distance(typo, flag)) << outcome.text;
      EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
    }
  }
}

TEST(Help, WhatIsMistypedIsSaidBeforeWhatIsMissing) {
  EXPECT_EQ(run_trireme("cost --rank 8 2>&1").text,
            "trireme: cost has no flag --rank; did you mean --ranks? see trireme cost --help\n");
  EXPECT_THAT(run_trireme("explain ring --rank=8 2>&1").text, HasSubstr("did you mean --ranks? "));
  EXPECT_THAT(run_trireme("cost --ranks_x 8 2>&1").text, HasSubstr("did you mean --ranks? "));
  EXPECT_THAT(run_trireme("bench codec --cdec topk 2>&1").text, HasSubstr("see trireme bench codec --help"));
  EXPECT_THAT(run_trireme("cost --frobnicate 2>&1").text,
              HasSubstr("cost has no flag --frobnicate; see trireme cost --help"));
  EXPECT_THAT(run_trireme("cost 8 2>&1").text, HasSubstr("trireme cost takes no '8' there"));
  EXPECT_THAT(run_trireme("run -n 2 --tiemout 3 -- true 2>&1").text, HasSubstr("did you mean --timeout? "));
  EXPECT_THAT(run_trireme("plan --cluster x --profle y 2>&1").text, HasSubstr("did you mean --profile? "));
  EXPECT_LT(run_trireme("cost --$(head -c 100000 /dev/zero | tr '\\0' x) 2>&1").text.size(), 400U);
}

TEST(Help, AMistypedCommandNamesTheNearest) {
  EXPECT_THAT(run_trireme("trian 2>&1").text, HasSubstr("there is no command 'trian'; did you mean train? "));
  EXPECT_THAT(run_trireme("--verison 2>&1").text, HasSubstr("did you mean --version? "));
  EXPECT_THAT(run_trireme("bench codecc 2>&1").text, HasSubstr("did you mean codec? "));
  EXPECT_THAT(run_trireme("bench all-reduc 2>&1").text, HasSubstr("did you mean all-reduce? "));
  EXPECT_THAT(run_trireme("bench ddpp 2>&1").text, HasSubstr("did you mean ddp? "));
  EXPECT_THAT(run_trireme("explain rnig 2>&1").text, HasSubstr("did you mean ring? "));
}

}  // namespace
}  // namespace trireme::test
