// Signals, and that nothing outlives a job.
#include "tests/cli/started.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace trireme::test {
namespace {

using testing::HasSubstr;

// Each worker leaves a child in its group, one in another session, and a daemon whose parents are gone.
constexpr auto kHides =
    "sleep 300 & setsid sleep 300 & (setsid sh -c 'trap \"\" TERM HUP INT; sleep 300 & sleep 300' &) ; echo up; ";

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  int parent = -1;
  char state;
  std::sscanf(text.c_str() + text.rfind(')') + 1, " %c %d", &state, &parent);
  return parent;
}

pid_t guardian_of(const Started& program) {
  for (pid_t pid : program.processes()) {
    if (parent_of(pid) == program.pid()) return pid;
  }
  return -1;
}

TEST(RunLifetime, KillingTheLauncherLeavesNothing) {
  Started program(with_shell({"run", "-n", "3"}, std::string(kHides) + "trap '' TERM; sleep 300"));
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up") &&
              program.wait_for_output("[2] up"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GE(program.processes().size(), 2u + 3u * 5u);
  program.kill(SIGKILL);
  EXPECT_EQ(program.wait(), 137);
  EXPECT_TRUE(program.wait_until_nothing_is_left(1));
}

TEST(RunLifetime, KillingTheGuardianLeavesNothing) {
  Started program(with_shell({"run", "-n", "2"}, std::string(kHides) + "sleep 300"));
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
  pid_t guardian = guardian_of(program);
  ASSERT_GT(guardian, 0);
  ::kill(guardian, SIGKILL);
  EXPECT_EQ(program.wait(2), 1);
  EXPECT_TRUE(program.wait_until_nothing_is_left(1));
  EXPECT_THAT(program.err(), HasSubstr("guards the workers was killed"));
}

TEST(RunLifetime, KillingTheLaunchersGroupLeavesNothing) {
  Started program(with_shell({"run", "-n", "2"}, std::string(kHides) + "sleep 300"), {.terminal = true});
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
  ::kill(-program.pid(), SIGKILL);
  EXPECT_EQ(program.wait(), 137);
  EXPECT_TRUE(program.wait_until_nothing_is_left(1));
}

TEST(RunLifetime, WorkersThatStandStillHearThatTheyShallEnd) {
  Started program(with_shell({"run", "-n", "2"}, "trap 'echo heard; exit 5' TERM; echo up; kill -STOP $$; sleep 300"));
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  program.kill(SIGTERM);
  program.wait(3);
  EXPECT_THAT(program.out(), HasSubstr("heard"));
  EXPECT_TRUE(program.processes().empty());
}

TEST(RunLifetime, WhatWorkersStartedEndsWithTheJob) {
  for (auto [ending, code] :
       std::vector<std::pair<std::string, int>>{{"exit 0", 0}, {"exit 4", 4}, {"kill -9 $$", 137}}) {
    Started program(with_shell({"run", "-n", "2"}, kHides + ending));
    EXPECT_EQ(program.wait(3), code) << ending;
    EXPECT_TRUE(program.processes().empty()) << ending;  // at once: they were gone before it ended
    EXPECT_LT(program.seconds(), 1.5);
  }
}

TEST(RunLifetime, ALauncherWithinALauncherGoesToo) {
  Started program(
      with_shell({"run", "-n", "2"}, std::string(TRIREME_PROGRAM) + " run -n 2 -- sh -c 'echo up; sleep 300'"));
  ASSERT_TRUE(program.wait_for_output("[0] [0] up") && program.wait_for_output("[1] [1] up"));
  program.kill(SIGKILL);
  program.wait();
  EXPECT_TRUE(program.wait_until_nothing_is_left(1));
}

TEST(RunLifetime, ForwardsSignalsToWholeGroups) {
  // The child of the worker hears it as well.
  Started program(
      with_shell({"run", "-n", "2"},
                 "trap 'echo usr1 $RANK' USR1; trap 'echo usr2 $RANK' USR2; trap 'echo term $RANK; exit 0' TERM; "
                 "sh -c 'trap \"echo child $RANK; exit 0\" USR1; echo up; while :; do sleep 0.02; done' & "
                 "while :; do sleep 0.02; done"));
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
  program.kill(SIGUSR1);
  for (auto text : {"[0] usr1 0", "[1] usr1 1", "[0] child 0", "[1] child 1"})
    EXPECT_TRUE(program.wait_for_output(text, 3)) << text;
  program.kill(SIGUSR2);
  for (auto text : {"usr2 0", "usr2 1"}) EXPECT_TRUE(program.wait_for_output(text, 3)) << text;
  program.kill(SIGTERM);
  EXPECT_EQ(program.wait(3), 0);  // all ended with 0
  EXPECT_THAT(program.out(), HasSubstr("term 0"));
  EXPECT_THAT(program.out(), HasSubstr("term 1"));
}

TEST(RunLifetime, TellsThatItWasInterrupted) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    Started program({"run", "-n", "2", "--", "sh", "-c", "echo up; exec sleep 300"});
    ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
    program.kill(number);
    EXPECT_EQ(program.wait(2), 128 + number);
    EXPECT_THAT(program.err(), HasSubstr("trireme run: interrupted by signal " + std::to_string(number)));
    EXPECT_EQ(lines_of(program.err()).size(), 1u);
  }
}

TEST(RunLifetime, ASecondCtrlCKills) {
  Started program(with_shell({"run", "-n", "2"}, "trap 'echo no' INT; echo up; while :; do sleep 0.05; done"),
                  {.terminal = true});
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
  program.type("\x03");
  EXPECT_TRUE(program.wait_for_output("[0] no") && program.wait_for_output("[1] no"));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  program.type("\x03");
  EXPECT_EQ(program.wait(1), 130);
  EXPECT_TRUE(program.processes().empty());
}

TEST(RunLifetime, StopsAndContinuesWithItsWorkers) {
  Started program(with_shell({"run", "-n", "2"}, "echo up; while :; do sleep 0.02; done"), {.terminal = true});
  ASSERT_TRUE(program.wait_for_output("[0] up") && program.wait_for_output("[1] up"));
  auto stopped = [&] {
    int count = 0;
    for (pid_t pid : program.processes()) {
      std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
      std::string text{std::istreambuf_iterator<char>(file), {}};
      count += text.find(") T") != std::string::npos;
    }
    return count;
  };
  auto reaches = [&](auto good) {
    for (int i = 0; i < 200 && !good(stopped()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return good(stopped());
  };
  // An orphaned group (as of a session leader) is not stopped by the terminal: the workers are, the launcher goes on.
  program.kill(SIGTSTP);
  EXPECT_TRUE(reaches([](int n) { return n >= 2; }));
  program.kill(SIGCONT);
  EXPECT_TRUE(reaches([](int n) { return n == 0; }));
  program.kill(SIGTERM);
  EXPECT_EQ(program.wait(2), 143);
}

}  // namespace
}  // namespace trireme::test
