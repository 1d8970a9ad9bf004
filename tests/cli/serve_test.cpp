// `trireme serve`: what it refuses, and how it ends before it has begun.
#include <gmock/gmock.h>

#include "tests/cli/outcome.h"
#include "tests/cli/started.h"

namespace trireme::test {
namespace {

TEST(ServeCommand, RefusesBeforeItSaysWhereItIs) {
  for (const std::string flags :
       {"--coordinate --listen nowhere", "--coordinate --listen @socket", "--coordinate --at nowhere",
        "--coordinate --checkpoint /tmp", "--coordinate --name a --checkpoint /tmp --checkpoint-every 0",
        "--coordinate --checkpoint-every 5", "--coordinate --servers 2 --replicas 3", "--coordinate --lease never",
        "--at @x --workers 2", "--at @x --servers 2", "--at @x --replicas 1", "--at @x --lease 3"}) {
    EXPECT_TRUE(refuses("serve " + flags)) << flags << "\n" << run_trireme("serve " + flags + " 2>&1").text;
  }
  EXPECT_THAT(run_trireme("serve --at @x --workers 2 2>&1").text,
              testing::HasSubstr("--workers: it is for --coordinate"));
}

TEST(ServeCommand, ASignalEndsItWhileNobodyAnswers) {
  for (int number : {SIGINT, SIGTERM}) {
    Started program({"serve", "--at", "@trireme-nobody-is-here"});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    program.kill(number);
    EXPECT_EQ(program.wait(5), 128 + number);
    EXPECT_LT(program.seconds(), 5);
  }
}

TEST(ServeCommand, ACoordinatorSaysWhereItIs) {
  Started program({"serve", "--coordinate"});
  ASSERT_TRUE(program.wait_for_output("TRIREME_PS=@"));
  program.kill(SIGTERM);
  EXPECT_NE(program.wait(10), -1);
}

}  // namespace
}  // namespace trireme::test
