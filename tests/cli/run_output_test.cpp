// What becomes of the workers' output and input.
#include "tests/cli/started.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace trireme::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(RunOutput, BeginsLinesWithTheRankAndKeepsTheTwoStreams) {
  auto run = trireme_run(with_shell({"-n", "2"}, "echo out $RANK; echo err $RANK >&2"));
  EXPECT_THAT(lines_of(run.out), UnorderedElementsAre("[0] out 0", "[1] out 1"));
  EXPECT_THAT(lines_of(run.err), UnorderedElementsAre("[0] err 0", "[1] err 1"));
}

TEST(RunOutput, EndsUnfinishedLinesAndPassesAnyByte) {
  auto run = trireme_run(with_shell({"-n", "1"}, "printf 'a\\000b\\377\\r\\n\\nend'"));
  EXPECT_EQ(run.out, std::string("[0] a\0b\xff\r\n[0] \n[0] end\n", 23));
  EXPECT_EQ(trireme_run(with_shell({"--no-prefix"}, "printf 'a\\000b'")).out, std::string("a\0b", 3));
}

TEST(RunOutput, ShowsALineThatDoesNotEnd) {
  Started program(with_shell({"run", "-n", "2"},
                             "[ $RANK = 1 ] && { sleep 1.2; echo other; sleep 60; }; printf 'name? '; "
                             "sleep 1.8; echo done; sleep 60"));
  EXPECT_TRUE(program.wait_for_output("[0] name? ", 1.1));
  EXPECT_TRUE(program.wait_for_output("[0] name? \n[1] other\n[0] done\n", 5)) << program.out();
}

TEST(RunOutput, KeepsLinesWholeAndInOrder) {
  constexpr int kRanks = 8, kLines = 10000;
  auto run = trireme_run(
      {"-n", std::to_string(kRanks), "--", "awk",
       "BEGIN { for (i = 0; i < 10000; i++) { s = sprintf(\"%d %d\", ENVIRON[\"RANK\"], i); printf \"%s \", s; "
       "if (i % 7 == 0) fflush(); printf \"%0\" (i % 90 + 1) \"d\\n\", 7 } }"});
  EXPECT_EQ(run.code, 0) << run.err;
  std::map<int, int> next;
  int lines = 0;
  for (auto& line : lines_of(run.out)) {
    int prefix = -1, rank = -1, i = -1, end = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "[%d] %d %d %n", &prefix, &rank, &i, &end), 3) << line;
    ASSERT_EQ(prefix, rank) << line;
    ASSERT_EQ(next[rank]++, i) << line;
    ASSERT_EQ(static_cast<int>(line.size()) - end, i % 90 + 1) << line;
    ++lines;
  }
  EXPECT_EQ(lines, kRanks * kLines);
}

TEST(RunOutput, KeepsLinesWholeWhenBothStreamsAreOnePipe) {
  Started program(
      {"run", "-n", "1", "--", TRIREME_PROGRAM, "run", "-n", "2", "--", "sh", "-c", "seq 3000 & seq 3000 >&2; wait"});
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ(lines_of(program.out()).size(), 6000u);
  EXPECT_EQ(lines_of(program.err()).size(), 6000u);
  for (auto& line : lines_of(program.out() + program.err()))
    ASSERT_THAT(line, testing::MatchesRegex("\\[0\\] \\[[01]\\] [0-9]+"));
}

TEST(RunOutput, PrintsVeryLongLinesWhole) {
  auto run = trireme_run(with_shell({"-n", "2"}, "head -c 500000 /dev/zero | tr '\\0' x; echo"));
  auto lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), 500004u);
  EXPECT_EQ(lines[1].size(), 500004u);
}

TEST(RunOutput, LosesNothingOfAWorkerThatIsKilled) {
  auto run = trireme_run(with_shell({"-n", "2"}, "seq 20000; [ $RANK = 1 ] && kill -9 $$; sleep 60"));
  EXPECT_EQ(run.code, 137);
  EXPECT_THAT(run.out, HasSubstr("[1] 20000\n"));
}

TEST(RunOutput, EndsWhenItsReaderHasSeenEnough) {
  Started shell({"run", "--no-prefix", "--", "sh", "-c",
                 std::string(TRIREME_PROGRAM) + " run -n 2 --no-prefix -- yes | head -n 3; echo"});
  EXPECT_EQ(shell.wait(), 0);
  EXPECT_EQ(shell.out(), "y\ny\ny\n\n");
  EXPECT_EQ(shell.err(), "");
}

TEST(RunOutput, WaitsForASlowReader) {
  Started shell({"run", "--no-prefix", "--", "sh", "-c",
                 std::string(TRIREME_PROGRAM) + " run -n 2 -- seq 200000 | (sleep 0.5; wc -l)"});
  EXPECT_EQ(shell.wait(), 0);
  EXPECT_EQ(shell.out(), "400000\n");
}

TEST(RunOutput, GivesStdinToRankZero) {
  auto run = trireme_run(with_shell({"-n", "2"}, "cat; echo end"), {.input = "one\ntwo\n"});
  EXPECT_THAT(lines_of(run.out), UnorderedElementsAre("[0] one", "[0] two", "[0] end", "[1] end"));
}

TEST(RunOutput, RelaysATerminalAndColoursRanks) {
  Started program(with_shell({"run", "-n", "2"}, "[ $RANK = 1 ] && exit; read x; echo got $x; cat; echo eof"),
                  {.env = {{"TERM", "xterm"}}, .terminal = true});
  program.type("hello\n");
  EXPECT_TRUE(program.wait_for_output("\x1b[36m[0]\x1b[0m got hello")) << program.out();
  program.type("\x04");
  EXPECT_TRUE(program.wait_for_output("eof")) << program.out();
  EXPECT_EQ(program.wait(), 0);
  Started plain({"run", "--", "echo", "x"}, {.env = {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, .terminal = true});
  EXPECT_TRUE(plain.wait_for_output("[0] x"));
  EXPECT_THAT(plain.out(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace trireme::test
