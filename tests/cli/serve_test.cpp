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

TEST(ServeCommand, AServerOfAnotherKeyIsNamedByTheCoordinator) {
  Started coordinator({"serve", "--coordinate", "--at", "127.0.0.1:0"},
                      {.env = {{"TRIREME_KEY", std::string(64, 'a')}}});
  const std::string said = "TRIREME_PS=";
  ASSERT_TRUE(coordinator.wait_for_output("TRIREME_PS=127.0.0.1:"));
  ASSERT_TRUE(coordinator.wait_for_output("\n"));
  const auto out = coordinator.out();
  const auto at = out.find(said) + said.size();
  const auto place = out.substr(at, out.find_first_of(" \n", at) - at);
  Started other({"serve", "--at", place}, {.env = {{"TRIREME_KEY", std::string(64, 'b')}}});
  EXPECT_EQ(other.wait(10), 5);
  EXPECT_THAT(other.err(), testing::HasSubstr("does not accept our key"));
  coordinator.kill(SIGTERM);
  EXPECT_NE(coordinator.wait(10), -1);
  EXPECT_THAT(coordinator.err(),
              testing::ContainsRegex("parameter server: refused 127.0.0.1:[0-9]+: the job keys differ\n"));
}

}  // namespace
}  // namespace trireme::test
