#include "trireme/base/process/child_process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/process/subprocess.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

TEST(ChildProcess, TellsHowItEnded) {
  EXPECT_EQ(ChildProcess({"sh", "-c", "exit 7"}).finish(10s), 7);
  EXPECT_EQ(ChildProcess({"/bin/sh", "-c", "kill -KILL $$"}).finish(10s), 128 + SIGKILL);
  ChildProcess sleeper({"sleep", "30"});
  EXPECT_FALSE(sleeper.ended());
  EXPECT_FALSE(sleeper.wait(Deadline::in(10ms)));
  EXPECT_GT(sleeper.pid(), 0);
  sleeper.signal(SIGTERM);
  EXPECT_EQ(sleeper.wait(Deadline::in(10s)), 128 + SIGTERM);
  EXPECT_EQ(sleeper.ended(), 128 + SIGTERM);
  EXPECT_EQ(sleeper.pid(), -1);
}

TEST(ChildProcess, SaysWhyItCannotStart) {
  try {
    ChildProcess({"trireme-no-such-program"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot run trireme-no-such-program: No such file or directory");
  }
}

TEST(ChildProcess, WritesWhereItIsToldAndReadsNothing) {
  const int file = ::memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(ChildProcess({"sh", "-c", "cat; echo out; echo err >&2"}, {.out = file, .err = file}).finish(10s), 0);
  char text[32] = {};
  EXPECT_EQ(::pread(file, text, sizeof text - 1, 0), 8);
  EXPECT_STREQ(text, "out\nerr\n");
  ::close(file);
}

TEST(ChildProcess, IsEndedWithAllOfItsGroup) {
  ChildProcess deaf({"sh", "-c", "trap '' TERM; sleep 30 & wait; sleep 30"});
  const pid_t pid = deaf.pid();
  ::usleep(100'000);  // until the trap is set; where it is not, it ends the sooner
  deaf.finish(Duration::zero());
  for (int i = 0; i < 1000 && ::kill(-pid, 0) == 0; ++i) ::usleep(2000);
  EXPECT_NE(::kill(-pid, 0), 0);
}

TEST(ChildProcess, GoesWithTheObjectThatHasIt) {
  pid_t pid = 0;
  {
    ChildProcess first({"sleep", "30"}), second = std::move(first);
    pid = second.pid();
    EXPECT_EQ(first.pid(), -1);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(Subprocess, GivesOutputAndLastLine) {
  std::string said;
  const auto child = run_child({"sh", "-c", "echo one; echo two >&2; echo three >&2; exit 3"}, nullptr,
                               {.says = [&](std::string_view bytes) { said += bytes; }, .goes_on = {}});
  EXPECT_EQ(child.code, 3);
  EXPECT_EQ(child.output, "one\n");
  EXPECT_EQ(child.last_said, "three");
  EXPECT_EQ(said, "two\nthree\n");
}

}  // namespace
}  // namespace trireme
