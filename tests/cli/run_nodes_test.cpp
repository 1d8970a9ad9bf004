// `trireme run` on several nodes: one launcher each, here on one host.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <set>

#include "tests/cli/started.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

int connected_to(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  ::close(fd);
  return -1;
}

class RunNodes : public testing::Test {
 protected:
  RunNodes() {
    char name[] = "/tmp/trireme_nodes_XXXXXX";
    folder_ = ::mkdtemp(name);
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any{.sin_family = AF_INET};
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    ::bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &length);
    port_ = ntohs(any.sin_port);
    ::close(fd);
  }
  ~RunNodes() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Started> node(int rank, int workers, const std::string& script, std::vector<std::string> more = {},
                                std::map<std::string, std::string> env = {}) {
    std::vector<std::string> args{"run", "-n", std::to_string(workers), "--node-rank", std::to_string(rank)};
    bool told = std::find(more.begin(), more.end(), "--nnodes") != more.end();
    if (!told) args.insert(args.end(), {"--nnodes", "2"});
    args.insert(args.end(), {"--rdzv-endpoint", host_ + ":" + std::to_string(port_)});
    args.insert(args.end(), more.begin(), more.end());
    env.emplace("XDG_STATE_HOME", folder_);  // where the user's key is
    return std::make_unique<Started>(with_shell(args, script), StartOptions{.env = env});
  }

  std::string folder_, host_ = "127.0.0.1";
  int port_ = 0;
};

constexpr auto kWaits = "echo up; exec sleep 300";

bool all_up(Started& zero, Started& one) { return zero.wait_for_output("] up") && one.wait_for_output("] up"); }

bool says(const Started& program, const std::string& text) {
  return poll_until(10, [&] { return program.err().find(text) != std::string::npos; });
}

TEST_F(RunNodes, NumberTheirRanksTogether) {
  for (std::string host : {"127.0.0.1", "[::1]", "localhost"}) {
    host_ = host;
    auto script =
        "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE; echo $MASTER_ADDR "
        "$MASTER_PORT "
        "$TRIREME_RDZV $TRIREME_KEY $TRIREME_JOB $TRIREME_BIND";
    auto one = node(1, 3, script, {"--no-prefix"});
    auto zero = node(0, 2, script, {"--no-prefix"});
    EXPECT_EQ(zero->wait(), 0) << zero->err();
    EXPECT_EQ(one->wait(), 0) << one->err();
    std::vector<std::string> ranks;
    std::set<std::string> shared;
    for (auto& line : lines_of(zero->out() + one->out())) {
      line.find('/') != std::string::npos ? ranks.push_back(line) : void(shared.insert(line));
    }
    EXPECT_THAT(ranks, UnorderedElementsAre("0/5 0/2 0/2", "1/5 1/2 0/2", "2/5 0/3 1/2", "3/5 1/3 1/2", "4/5 2/3 1/2"));
    ASSERT_EQ(shared.size(), 1u) << zero->out() << one->out();
    EXPECT_THAT(
        *shared.begin(),
        MatchesRegex("(127.0.0.1|::1) [0-9]+ (127.0.0.1|\\[::1\\]):[0-9]+ [0-9a-f]+ job-[0-9a-f]+ (127.0.0.1|::1)"));
  }
}

TEST_F(RunNodes, WaitForTheSlowest) {
  auto zero = node(0, 1, "true");
  EXPECT_TRUE(says(*zero, "waiting for node 1 of 2 at 127.0.0.1:"));
  auto one = node(1, 1, "sleep 0.3");
  EXPECT_EQ(one->wait(), 0);
  EXPECT_EQ(zero->wait(), 0);
  EXPECT_GT(zero->seconds(), 0.9);  // it stayed until the other's worker ended
}

TEST_F(RunNodes, AllStopWhenAWorkerDiesAnywhere) {
  for (int dying : {0, 1}) {
    auto dies = "echo up; sleep 0.3; [ $LOCAL_RANK = 1 ] && kill -9 $$; exec sleep 300";
    auto zero = node(0, 2, dying == 0 ? dies : kWaits);
    auto one = node(1, 2, dying == 1 ? dies : kWaits);
    ASSERT_TRUE(all_up(*zero, *one));
    auto began = Clock::now();
    EXPECT_EQ(zero->wait(3), 137) << zero->err();
    EXPECT_EQ(one->wait(3), 137) << one->err();
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - began).count(), 1.3);
    auto line = "trireme run: rank " + std::string(dying == 0 ? "1" : "3") +
                " \\(pid [0-9]+, host [^)]+\\) was killed by signal 9 "
                "\\(SIGKILL\\); stopped the [12] running here\n";
    EXPECT_THAT(zero->err(), MatchesRegex(line));
    EXPECT_THAT(one->err(), MatchesRegex(line));
  }
}

TEST_F(RunNodes, AllStopWhenALauncherIsKilled) {
  auto zero = node(0, 2, kWaits);
  auto one = node(1, 2, kWaits);
  ASSERT_TRUE(all_up(*zero, *one));
  one->kill(SIGKILL);
  EXPECT_EQ(zero->wait(1), 3);
  EXPECT_THAT(
      zero->err(),
      MatchesRegex("trireme run: node 1 \\(host [^,]+, ranks 2-3\\) was lost: its launcher is gone; stopped the 2 "
                   "running here\n"));
  EXPECT_TRUE(one->wait_until_nothing_is_left(1));

  zero = node(0, 2, kWaits);
  one = node(1, 2, kWaits);
  ASSERT_TRUE(all_up(*zero, *one));
  zero->kill(SIGKILL);
  EXPECT_EQ(one->wait(1), 3);
  EXPECT_THAT(one->err(), HasSubstr("node 0 (at 127.0.0.1:"));
  EXPECT_TRUE(zero->wait_until_nothing_is_left(1));
}

TEST_F(RunNodes, NoticeANodeThatIsSilent) {
  auto zero = node(0, 1, kWaits, {"--heartbeat-timeout", "0.7"});
  auto one = node(1, 1, kWaits, {"--heartbeat-timeout", "0.7"});
  ASSERT_TRUE(all_up(*zero, *one));
  one->kill(SIGSTOP);
  EXPECT_EQ(zero->wait(2), 3);
  EXPECT_THAT(zero->err(), HasSubstr("node 1 (host "));
  EXPECT_THAT(zero->err(), HasSubstr("rank 1) was lost: no word from it for 0.7 s"));
  one->kill(SIGCONT);
  EXPECT_EQ(one->wait(2), 3);
}

TEST_F(RunNodes, SignalsReachTheWorkersOfAll) {
  auto script = "trap 'echo usr1; exit 0' USR1; echo up; while :; do sleep 0.02; done";
  auto zero = node(0, 1, script);
  auto one = node(1, 1, script);
  ASSERT_TRUE(all_up(*zero, *one));
  one->kill(SIGUSR1);
  EXPECT_EQ(zero->wait(3), 0);
  EXPECT_EQ(one->wait(3), 0);
  EXPECT_THAT(zero->out() + one->out(), HasSubstr("[0] usr1"));
  zero = node(0, 1, kWaits);
  one = node(1, 1, kWaits);
  ASSERT_TRUE(all_up(*zero, *one));
  zero->kill(SIGINT);
  EXPECT_EQ(zero->wait(3), 130);
  EXPECT_EQ(one->wait(3), 130);
}

TEST_F(RunNodes, RefuseAnotherKeyAtOnce) {
  auto zero = node(0, 1, kWaits, {"--timeout", "2"}, {{"TRIREME_KEY", std::string(64, 'a')}});
  auto one = node(1, 1, kWaits, {}, {{"TRIREME_KEY", std::string(64, 'b')}});
  EXPECT_EQ(one->wait(1.5), 5);
  EXPECT_THAT(one->err(), HasSubstr("refuses this node: the job keys differ"));
  EXPECT_EQ(zero->wait(3), 4);
  EXPECT_THAT(zero->err(), HasSubstr("which claims to be rank 1: the job keys differ"));
  EXPECT_THAT(zero->err(), HasSubstr("node 1 of 2 did not come to 127.0.0.1:"));
}

TEST_F(RunNodes, RefuseTheSameNodeTwiceAndOtherNumbersOfNodes) {
  auto zero = node(0, 1, kWaits, {"--nnodes", "3"});
  auto first = node(1, 1, kWaits, {"--nnodes", "3"});
  ASSERT_TRUE(says(*first, "reached node 0"));
  auto second = node(1, 1, kWaits, {"--nnodes", "3"});
  EXPECT_EQ(second->wait(2), 2);
  EXPECT_THAT(second->err(), HasSubstr("node rank 1 has joined the job already"));
  auto other = node(1, 1, kWaits, {"--nnodes", "2"});
  EXPECT_EQ(other->wait(2), 2);
  EXPECT_THAT(other->err(), HasSubstr("--nnodes is 3 there, 2 here"));
  auto rival = node(0, 1, kWaits, {"--nnodes", "3"});
  EXPECT_EQ(rival->wait(2), 2);
  EXPECT_THAT(rival->err(), HasSubstr("cannot listen at 127.0.0.1:"));
  zero->kill(SIGINT);
  EXPECT_EQ(zero->wait(2), 130);
  EXPECT_EQ(first->wait(2), 130);
}

TEST_F(RunNodes, GiveUpWhenNobodyComes) {
  auto one = node(1, 1, kWaits, {"--timeout", "0.5"});
  EXPECT_EQ(one->wait(2), 4);
  EXPECT_THAT(one->err(), HasSubstr("cannot reach node 0 at 127.0.0.1:"));
  auto zero = node(0, 1, kWaits, {"--timeout", "0.5", "--nnodes", "3"});
  auto two = node(2, 1, kWaits, {"--nnodes", "3"});
  EXPECT_EQ(zero->wait(2), 4);
  EXPECT_EQ(two->wait(2), 4);  // it came, and is told
  EXPECT_THAT(two->err(), HasSubstr("node 1 of 3 did not come"));
}

TEST_F(RunNodes, StrangersAtTheDoorDoNotDisturb) {
  auto zero = node(0, 1, "true");
  int garbage = -1;
  ASSERT_TRUE(poll_until(5, [&] { return (garbage = connected_to(port_)) >= 0; }));
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connected_to(port_));
  std::string request = "GET / HTTP/1.0\r\n\r\n" + std::string(100000, 'x');
  (void)!::send(garbage, request.data(), request.size(), MSG_NOSIGNAL);
  auto one = node(1, 1, "true");
  EXPECT_EQ(zero->wait(3), 0) << zero->err();
  EXPECT_EQ(one->wait(3), 0) << one->err();
  for (int fd : silent) ::close(fd);
  ::close(garbage);
}

TEST_F(RunNodes, BeyondLoopbackNeedAKeyThatOthersCannotRead) {
  std::string key = folder_ + "/key";
  std::ofstream(key) << std::string(64, 'c') << "\n";
  ::chmod(key.c_str(), 0644);
  host_ = "0.0.0.0";
  auto open = node(0, 1, "true");
  EXPECT_EQ(open->wait(2), 2);
  EXPECT_THAT(open->err(), HasSubstr("must share a key"));
  auto readable = node(0, 1, "true", {"--key-file", key});
  EXPECT_EQ(readable->wait(2), 2);
  ::chmod(key.c_str(), 0600);
  auto zero = node(0, 1, "echo $TRIREME_KEY_FILE${TRIREME_KEY-} $MASTER_ADDR", {"--key-file", key});
  host_ = "127.0.0.1";
  auto one = node(1, 1, "echo $TRIREME_BIND", {"--key-file", key});
  EXPECT_EQ(zero->wait(), 0) << zero->err();
  EXPECT_EQ(one->wait(), 0) << one->err();
  EXPECT_EQ(zero->out(), "[0] " + key + " 127.0.0.1\n");
  EXPECT_EQ(one->out(), "[1] 127.0.0.1\n");
}

}  // namespace
}  // namespace trireme::test
