// launch() as other commands use it: from C++, with the output handed over.
#include "trireme/launch/launch.h"
#include "tests/forked.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "trireme/base/error.h"

namespace trireme::launch {
namespace {

struct Captured {
  LaunchResult result;
  std::map<int, std::string> out, err;
};

Captured capture(int workers, const std::string& script, LaunchSpec spec = {}) {
  Captured captured;
  spec.command = {"sh", "-c", script};
  spec.workers = workers;
  spec.output = Output::capture;
  spec.capture = [&](int rank, bool is_stderr, std::string_view bytes) {
    (is_stderr ? captured.err : captured.out)[rank] += bytes;
  };
  captured.result = launch(spec);
  return captured;
}

TEST(Launch, HandsOverTheOutputOfEachRank) {
  LaunchSpec spec;
  spec.env = {{"GREETING", "hello"}};
  auto run = capture(3, "echo $GREETING $RANK; printf e$RANK >&2", spec);
  EXPECT_EQ(run.result.exit_code, 0);
  EXPECT_EQ(run.result.failure, "");
  EXPECT_EQ(run.out, (std::map<int, std::string>{{0, "hello 0\n"}, {1, "hello 1\n"}, {2, "hello 2\n"}}));
  EXPECT_EQ(run.err, (std::map<int, std::string>{{0, "e0"}, {1, "e1"}, {2, "e2"}}));
}

TEST(Launch, SaysWhoDiedAndHow) {
  auto run = capture(3, "[ $RANK = 1 ] && { echo $$; kill -SEGV $$; }; exec sleep 60");
  EXPECT_EQ(run.result.exit_code, 139);
  EXPECT_EQ(run.result.rank, 1);
  EXPECT_EQ(std::to_string(run.result.pid) + "\n", run.out[1]);
  EXPECT_TRUE(WIFSIGNALED(run.result.wait_status) && WTERMSIG(run.result.wait_status) == SIGSEGV);
  EXPECT_THAT(run.result.failure, testing::HasSubstr("rank 1 "));
}

// Rank 1 stops itself; the others do `rest`.
Captured with_one_stopped(const std::string& rest, LaunchSpec spec) {
  spec.stopped_s = [](int) { return 0.3; };
  return capture(3, "[ $RANK = 1 ] && kill -STOP $$; " + rest, spec);
}

TEST(Launch, EndsTheJobWhenAWorkerStandsStillForTooLong) {
  auto run = with_one_stopped("exec sleep 60", {});
  EXPECT_EQ(run.result.exit_code, 4);
  EXPECT_THAT(run.result.failure,
              testing::MatchesRegex("rank 1 \\(pid [0-9]+, host .*\\) was stopped by signal 19 "
                                    "\\(SIGSTOP\\) and stood still for 0.3.* s; stopped the other 2"));
}

TEST(Launch, KillsWhoStandsStillWhereTheOthersCanGoOn) {
  LaunchSpec spec;
  spec.expendable = [](int rank) { return rank == 1; };
  for (const std::string rest : {"sleep 1", "true"}) {  // which end after it was given up, or before
    auto run = with_one_stopped(rest + "; echo $RANK", spec);
    EXPECT_EQ(run.result.exit_code, 0) << run.result.failure;
    EXPECT_EQ(run.out, (std::map<int, std::string>{{0, "0\n"}, {2, "2\n"}}));
  }
}

TEST(Launch, LetsAWorkerStandStillForAMoment) {
  LaunchSpec spec;
  spec.stopped_s = [](int) { return 2; };
  auto run = capture(1, "(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; sleep 2.2; echo on", spec);
  EXPECT_EQ(run.result.exit_code, 0) << run.result.failure;
  EXPECT_EQ(run.out[0], "on\n");
}

TEST(Launch, EndsAlthoughItsGuardianWasStopped) {
  auto run = capture(2, "[ $RANK = 0 ] && kill -STOP $PPID; echo $RANK");
  EXPECT_EQ(run.result.exit_code, 0) << run.result.failure;
  EXPECT_EQ(run.out, (std::map<int, std::string>{{0, "0\n"}, {1, "1\n"}}));
}

TEST(Launch, GivesEveryWorkerTheDescriptorToInherit) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  LaunchSpec spec;
  spec.inherited = ends[1];
  EXPECT_EQ(capture(2, fmt::format("eval 'printf x >&{}'", ends[1]), spec).result.exit_code, 0);
  char text[3] = "";
  EXPECT_EQ(::read(ends[0], text, 2), 2);
  EXPECT_STREQ(text, "xx");
  for (int fd : ends) ::close(fd);
}

TEST(Launch, LeavesTheCallersProcessAsItWas) {
  sigset_t before, after;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  test::Forked child([] { return ::pause(); });  // not one of the job's: it must survive
  for (int i = 0; i < 3; ++i) EXPECT_EQ(capture(2, "sleep 30 & exit 2").result.exit_code, 2);
  ::sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < 32; ++number) EXPECT_EQ(sigismember(&before, number), sigismember(&after, number));
  EXPECT_EQ(::waitpid(child.pid(), nullptr, WNOHANG), 0);
  child.kill();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // and there is no other
}

TEST(Launch, RejectsWhatCannotBeBeforeStartingAnything) {
  for (int workers : {0, -1, kMostWorkers + 1}) EXPECT_THROW(capture(workers, "true"), ConfigError);
  LaunchSpec empty;
  EXPECT_THROW(launch(empty), ConfigError);
  LaunchSpec pigeon;
  pigeon.transport = "pigeon";
  EXPECT_THROW(capture(1, "true", pigeon), ConfigError);
  LaunchSpec missing;
  missing.command = {"/no/such/program"};
  EXPECT_THROW(launch(missing), Error);
}

}  // namespace
}  // namespace trireme::launch
