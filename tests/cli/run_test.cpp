// `trireme run` on one host.
#include "tests/cli/started.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trireme::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

TEST(Run, GivesEachWorkerItsEnvironment) {
  auto run = trireme_run(
      with_shell({"-n", "3", "--no-prefix", "--transport", "tcp"},
                 "echo rank $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $ROLE_RANK "
                 "$ROLE_WORLD_SIZE $TRIREME_TRANSPORT; echo job $TRIREME_JOB $TRIREME_KEY $TRIREME_RDZV; "
                 "echo master $MASTER_ADDR $MASTER_PORT; [ ${#TRIREME_KEY} = 64 ] || exit 9"));
  EXPECT_EQ(run.code, 0) << run.err;
  std::set<std::string> same;
  std::vector<std::string> ranks;
  for (auto& line : lines_of(run.out)) line.starts_with("rank") ? ranks.push_back(line) : void(same.insert(line));
  EXPECT_THAT(ranks,
              UnorderedElementsAre("rank 0 3 0 3 0 1 0 3 tcp", "rank 1 3 1 3 0 1 1 3 tcp", "rank 2 3 2 3 0 1 2 3 tcp"));
  ASSERT_EQ(same.size(), 2u) << run.out;
  EXPECT_THAT(*same.begin(), MatchesRegex("job job-[0-9a-f]+ [0-9a-f]+ 127.0.0.1:[0-9]+"));
  EXPECT_THAT(*same.rbegin(), MatchesRegex("master 127.0.0.1 [0-9]+"));
}

TEST(Run, SharesTheCoresUnlessTold) {
  auto script = "echo threads $OMP_NUM_THREADS";
  EXPECT_THAT(trireme_run(with_shell({"-n", "64"}, script)).out, HasSubstr("threads 1\n"));
  EXPECT_EQ(trireme_run(with_shell({}, script), {.env = {{"OMP_NUM_THREADS", "77"}}}).out, "[0] threads 77\n");
  EXPECT_THAT(trireme_run(with_shell({"-n", "64", "--verbose"}, "")).err, HasSubstr("OMP_NUM_THREADS=1"));
}

TEST(Run, HandsOnlyTheRendezvousSocketToRankZero) {
  auto script =
      "for fd in /proc/self/fd/*; do f=${fd##*/}; [ $f -gt 2 ] && readlink $fd | grep -v ^/ ; done; "
      "[ $RANK != 0 ] || readlink /proc/self/fd/$TRIREME_RDZV_FD; echo \"fd=$TRIREME_RDZV_FD\"";
  auto run = trireme_run(with_shell({"-n", "2"}, script));
  int sockets = 0;
  for (auto& line : lines_of(run.out)) sockets += line.find("socket:") != std::string::npos;
  EXPECT_EQ(sockets, 2) << run.out;  // found among all, and by its number
  EXPECT_THAT(run.out, HasSubstr("[1] fd=\n"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("pipe:")));
}

TEST(Run, PassesItsFlagsInEverySpellingAndWordsUntouched) {
  for (std::vector<std::string> flag : std::vector<std::vector<std::string>>{{"-n", "2"},
                                                                             {"-n2"},
                                                                             {"-np", "2"},
                                                                             {"--nproc-per-node", "2"},
                                                                             {"--nproc_per_node=2"},
                                                                             {"--ranks=2"},
                                                                             {"--workers", "2"}}) {
    flag.push_back("--no_prefix");
    EXPECT_EQ(trireme_run(with_shell(flag, "echo $WORLD_SIZE")).out, "2\n2\n") << flag[0];
  }
  auto run =
      trireme_run({"--", "printf", "%s|", "--no_prefix", "--", "[1,2]", "-n", "check", "{}", "", "a b", "--x_y=1"});
  EXPECT_EQ(run.out, "[0] --no_prefix|--|[1,2]|-n|check|{}||a b|--x_y=1|\n");
}

TEST(Run, EndsWithTheCodeOfTheOneThatFailed) {
  EXPECT_EQ(trireme_run({"-n", "4", "--", "true"}).code, 0);
  auto run = trireme_run(with_shell({"-n", "3"}, "[ $RANK != 1 ] || exit 7; sleep 60"));
  EXPECT_EQ(run.code, 7);
  EXPECT_THAT(
      run.err,
      MatchesRegex("trireme run: rank 1 \\(pid [0-9]+, host [^)]+\\) exited with code 7; stopped the other 2\n"));
  EXPECT_LT(run.seconds, 1);
}

TEST(Run, SaysWhichSignalKilledAWorker) {
  auto run = trireme_run(with_shell({"-n", "4"}, "[ $RANK != 2 ] || kill -9 $$; exec sleep 60"));
  EXPECT_EQ(run.code, 137);
  EXPECT_THAT(run.err,
              MatchesRegex("trireme run: rank 2 \\(pid [0-9]+, host [^)]+\\) was killed by signal 9 \\(SIGKILL\\); "
                           "stopped the other 3\n"));
}

TEST(Run, StopsWorkersThatIgnoreSigtermWithinASecond) {
  auto run = trireme_run(with_shell({"-n", "4"}, "trap '' TERM; [ $RANK != 3 ] || exit 5; while :; do sleep 1; done"));
  EXPECT_EQ(run.code, 5);
  EXPECT_LT(run.seconds, 1.2);
}

TEST(Run, BlamesTheCauseNotTheOnesThatGaveUpOverIt) {
  // Code 3 is "I lost a peer"; here it comes first.
  auto run = trireme_run(with_shell({"-n", "3"}, "[ $RANK = 2 ] && { sleep 0.1; kill -SEGV $$; }; exit 3"));
  EXPECT_EQ(run.code, 139);
  EXPECT_THAT(run.err, HasSubstr("rank 2"));
}

TEST(Run, GoesOnWhenOneEndsWell) {
  auto run = trireme_run(with_shell({"-n", "3"}, "[ $RANK = 0 ] && exit 0; sleep 0.3; echo still here"));
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(lines_of(run.out).size(), 2u);
}

TEST(Run, SaysInALineWhyAProgramCannotStart) {
  auto missing = trireme_run({"-n", "2", "--", "no-such-program"});
  EXPECT_EQ(missing.code, 127);
  EXPECT_THAT(missing.err, HasSubstr("'no-such-program': not found in PATH"));
  auto plain = trireme_run({"--", "/etc/passwd"});
  EXPECT_EQ(plain.code, 126);
  EXPECT_THAT(plain.err, HasSubstr("not executable"));
  char script[] = "/tmp/trireme_noexec_XXXXXX";
  int fd = ::mkstemp(script);
  (void)!::write(fd, "echo no first line\n", 19);
  ::fchmod(fd, 0700);
  ::close(fd);
  auto no_format = trireme_run({"-n", "3", "--", script});
  ::unlink(script);
  EXPECT_EQ(no_format.code, 126);
  EXPECT_THAT(no_format.err, HasSubstr("it is not a program"));
  for (auto& run : {missing, plain, no_format}) EXPECT_EQ(lines_of(run.err).size(), 1u) << run.err;
}

TEST(Run, AnswersBadInputWithOneLine) {
  std::vector<std::vector<std::string>> bad{
      {"-n", "0", "--", "true"},
      {"-n", "5000", "--", "true"},
      {"-n", "two", "--", "true"},
      {"-n", "-1", "--", "true"},
      {"-n", "2"},
      {"-n", "2", "--"},
      {"-n", "2", "true"},
      {"-n", "2", "ls", "-l"},
      {"--bogus", "--", "true"},
      {"--transport", "pigeon", "--", "true"},
      {"--grace", "-1", "--", "true"},
      {"--grace", "nan", "--", "true"},
      {"--timeout", "0", "--", "true"},
      {"--nnodes", "0", "--", "true"},
      {"--nnodes", "2", "--node-rank", "0", "--", "true"},
      {"--nnodes", "2", "--rdzv-endpoint", "127.0.0.1:1", "--", "true"},
      {"--nnodes", "2", "--node-rank", "2", "--rdzv-endpoint", "127.0.0.1:1", "--", "true"},
      {"--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "nowhere", "--", "true"},
      {"--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:99999", "--", "true"},
      {"--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "0.0.0.0:29400", "--", "true"},
      {"--nnodes", "2", "--node-rank", "1", "--transport", "shm", "--rdzv-endpoint", "127.0.0.1:29400", "--", "true"},
      {"--key-file", "/nonexistent", "--", "true"},
      {"--bind", "not an address", "--", "true"}};
  for (auto& args : bad) {
    auto run = trireme_run(args);
    EXPECT_EQ(run.code, 2) << testing::PrintToString(args) << run.err;
    EXPECT_EQ(lines_of(run.err).size(), 1u) << testing::PrintToString(args) << run.err;
    EXPECT_TRUE(run.err.starts_with("trireme: ")) << run.err;
  }
  EXPECT_EQ(trireme_run({"--", "true"}, {.env = {{"TRIREME_KEY", "abc"}}}).code, 2);
}

TEST(Run, StartsManyWorkers) {
  auto run = trireme_run(with_shell({"-n", "300"}, "echo $RANK; ulimit -n"), {});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(lines_of(run.out).size(), 600u);
}

TEST(Run, StartsQuickly) {
  double best = 10;
  for (int i = 0; i < 5; ++i) best = std::min(best, trireme_run({"-n", "4", "--", "true"}).seconds);
  EXPECT_LT(best, 0.3);
}

}  // namespace
}  // namespace trireme::test
