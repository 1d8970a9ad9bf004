// launch() as other commands use it: from C++, with the output handed over.
#include "trireme/net/launch/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <map>

#include "trireme/base/error.h"

namespace trireme::net {
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

TEST(Launch, LeavesTheCallersProcessAsItWas) {
  sigset_t before, after;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  pid_t child = ::fork();  // not one of the job's: it must survive
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(capture(2, "sleep 30 & exit 2").result.exit_code, 2);
  ::sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < 32; ++number) EXPECT_EQ(sigismember(&before, number), sigismember(&after, number));
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
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
}  // namespace trireme::net
