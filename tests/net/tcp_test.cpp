// What is tcp's alone: rendezvous, refusals, and processes that die or stop.
#include "trireme/net/tcp/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "tests/forked.h"
#include "tests/net/worlds.h"
#include "trireme/base/error.h"
#include "trireme/net/join/rendezvous.h"
#include "trireme/net/tcp/tcp_channel.h"

namespace trireme::net::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

WorldSpec spec_of(int rank, int size, const std::string& rendezvous) {
  WorldSpec spec;
  spec.rank = spec.local_rank = rank;
  spec.size = spec.local_size = size;
  spec.job = "tcp test " + std::to_string(::getpid());
  spec.rendezvous = rendezvous;
  return spec;
}

std::string free_address() {
  Fd listener = listen_at(resolve("127.0.0.1", 0).front());
  return to_string(local_address(listener.get()));
}

std::string temporary_path() {
  static int count = 0;
  return "/tmp/trireme-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

// Connects every rank with its own options, and has everyone say something to everyone.
std::vector<std::exception_ptr> meet(int ranks, const std::string& rendezvous, const Key& key,
                                     const ConnectOptions& options = {.timeout_s = 20}) {
  return run_ranks(ranks, [&](int rank) {
    auto transport = connect_tcp(spec_of(rank, ranks, rendezvous), options, key);
    std::vector<int> members;
    for (int i = 0; i < ranks; ++i) members.push_back(i);
    auto channel = transport->open(0, members, Deadline::in(10s));
    std::vector<Ticket> tickets(static_cast<std::size_t>(2 * ranks), Ticket{true});
    std::vector<int> heard(static_cast<std::size_t>(ranks), -1);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      auto p = static_cast<std::size_t>(peer);
      channel->send(peer, {}, std::as_bytes(std::span(&rank, 1)), tickets[2 * p]);
      channel->recv(peer, {}, {reinterpret_cast<std::byte*>(&heard[p]), sizeof(int)}, tickets[2 * p + 1]);
    }
    auto done = [&] { return std::all_of(tickets.begin(), tickets.end(), [](const Ticket& t) { return t.done; }); };
    while (!done()) {
      if (!channel->progress()) channel->idle(1ms);
    }
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(heard[static_cast<std::size_t>(peer)], peer);
    }
  });
}

TEST(Tcp, MeetsAtAnAddress) {
  for (int ranks : {2, 5}) rethrow_first(meet(ranks, free_address(), generate_key()));
}

TEST(Tcp, MeetsThroughAFileAndTakesItAway) {
  std::string path = temporary_path();
  rethrow_first(meet(3, "file:" + path, generate_key()));
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(Tcp, MeetsOnThisHostWithoutBeingToldWhere) { rethrow_first(meet(3, "", generate_key())); }

// Files of earlier jobs: one whose port is closed, one whose port belongs to something else that answers.
TEST(Tcp, AStaleFileLeadsNobodyAstray) {
  Fd other = listen_at(resolve("127.0.0.1", 0).front());
  for (const std::string& address : {free_address(), to_string(local_address(other.get()))}) {
    std::string path = temporary_path();
    write_rendezvous_file(path, {address, "0123456789abcdef"});
    Key key = generate_key();
    auto failures = run_ranks(2, [&](int rank) {
      if (rank == 0) std::this_thread::sleep_for(100ms);
      connect_tcp(spec_of(rank, 2, "file:" + path), {.timeout_s = 20}, key);
    });
    rethrow_first(failures);
  }
}

TEST(Tcp, AFileOthersCanWriteIsRefused) {
  std::string path = temporary_path();
  std::ofstream(path) << "trireme rendezvous 1\n127.0.0.1:1\nabc\n";
  ::chmod(path.c_str(), 0666);
  EXPECT_THROW(read_rendezvous_file(path), ConfigError);
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(read_rendezvous_file(path)->address, "127.0.0.1:1");
  std::ofstream(path, std::ios::trunc) << "something else";
  EXPECT_THROW(read_rendezvous_file(path), ConfigError);
  ::unlink(path.c_str());
  EXPECT_FALSE(read_rendezvous_file(path));
}

TEST(Tcp, NobodyLeavesLoopbackWithoutAJobKey) {
  Key standing = generate_key();
  standing.of_job = false;
  auto fails = [&](int rank, const std::string& rendezvous, const std::string& bind, const Key& key) -> std::string {
    try {
      connect_tcp(spec_of(rank, 2, rendezvous), {.bind = bind, .timeout_s = 0.2}, key);
    } catch (const ConfigError& error) {
      return error.what();
    } catch (const Error& error) {
      return std::string("another error: ") + error.what();
    }
    return "connected";
  };
  EXPECT_THAT(fails(0, "127.0.0.1:4000", "0.0.0.0", standing), HasSubstr("no job key"));
  EXPECT_THAT(fails(0, "[::1]:4000", "::", standing), HasSubstr("no job key"));
  EXPECT_THAT(fails(1, "192.0.2.1:4000", "", standing), HasSubstr("no job key"));
  // With a key, still not without being told to.
  EXPECT_THAT(fails(0, "192.0.2.1:4000", "", generate_key()), HasSubstr("TRIREME_BIND"));
  EXPECT_THAT(fails(0, "127.0.0.1:4000", "no.such.host.invalid", generate_key()), HasSubstr("TRIREME_BIND"));
}

TEST(Tcp, AWildcardWorksWithAKey) {
  rethrow_first(meet(3, free_address(), generate_key(), {.bind = "0.0.0.0", .timeout_s = 20}));
  if (has_ipv6()) rethrow_first(meet(3, free_address(), generate_key(), {.bind = "::", .timeout_s = 20}));
}

TEST(Tcp, WhoDidNotComeIsNamedEverywhere) {
  std::string address = free_address();
  Key key = generate_key();
  auto failures = run_ranks(3, [&](int i) {
    int rank = i == 0 ? 0 : i == 1 ? 1 : 3;  // of five: 2 and 4 are missing
    connect_tcp(spec_of(rank, 5, address), {.timeout_s = 0.5}, key);
  });
  EXPECT_TRUE(is<Timeout>(failures[0])) << text_of(failures[0]);
  for (const auto& failure : failures) EXPECT_THAT(text_of(failure), HasSubstr("ranks 2, 4 did not come"));
}

TEST(Tcp, AWrongKeyIsToldToThatRankAndNamedByRank0) {
  std::string address = free_address();
  auto failures =
      run_ranks(2, [&](int rank) { connect_tcp(spec_of(rank, 2, address), {.timeout_s = 1}, generate_key()); });
  EXPECT_TRUE(is<ProtocolError>(failures[1])) << text_of(failures[1]);
  EXPECT_THAT(text_of(failures[1]), HasSubstr("job keys differ"));
  EXPECT_THAT(text_of(failures[0]), HasSubstr("rank 1 did not come"));
  EXPECT_THAT(text_of(failures[0]), HasSubstr("job keys differ"));
}

TEST(Tcp, TwoProcessesCannotBeOneRank) {
  std::string address = free_address();
  Key key = generate_key();
  auto failures = run_ranks(3, [&](int i) { connect_tcp(spec_of(i == 0 ? 0 : 1, 3, address), {.timeout_s = 1}, key); });
  EXPECT_NE(is<ProtocolError>(failures[1]), is<ProtocolError>(failures[2]));
  const auto& refused = is<ProtocolError>(failures[1]) ? failures[1] : failures[2];
  EXPECT_THAT(text_of(refused), HasSubstr("connected already"));
}

TEST(Tcp, GroupsAreValidated) {
  auto world = tcp_world(2);
  auto open = [&](std::vector<int> members) { world[0]->open(5, members, Deadline::in(1s)); };
  EXPECT_THROW(open({0, 2}), ConfigError);
  EXPECT_THROW(open({0, 0}), ConfigError);
  EXPECT_THROW(open({1}), ConfigError);
  EXPECT_THROW(open({-1, 0}), ConfigError);
  try {
    world[0]->open(5, std::vector{0, 1}, Deadline::in(200ms));
    FAIL();
  } catch (const Timeout& error) {
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(), HasSubstr("channel 5"));
  }
}

// Rank 0 of two, with rank 1 in a process of its own.
class ChildRank {
 public:
  explicit ChildRank(const Key& key) {
    Fd listener = listen_at(resolve("127.0.0.1", 0).front());
    WorldSpec spec = spec_of(0, 2, to_string(local_address(listener.get())));
    child_.emplace([&] {
      spec.rank = spec.local_rank = 1;
      transport = connect_tcp(spec, {.timeout_s = 20}, key);
      channel = transport->open(1, std::vector{0, 1}, Deadline::in(10s));
      for (int i = 0; i < 300; ++i) ::usleep(100000);
      return 1;
    });
    spec.listen_fd = listener.release();
    transport = connect_tcp(spec, {.timeout_s = 20}, key);
    channel = transport->open(1, std::vector{0, 1}, Deadline::in(10s));
  }
  void signal(int number) { child_->signal(number); }

  std::unique_ptr<Transport> transport;
  std::unique_ptr<Channel> channel;

 private:
  std::optional<trireme::test::Forked> child_;
};

TEST(TcpProcess, AKilledRankIsNoticedAtOnce) {
  ChildRank child(generate_key());
  Ticket ticket;
  std::byte byte;
  child.channel->recv(1, {}, {&byte, 1}, ticket);
  auto start = Clock::now();
  child.signal(SIGKILL);
  try {
    while (!ticket.done && Clock::now() - start < 10s) {
      if (!child.channel->progress()) child.channel->idle(10ms);
    }
    FAIL();
  } catch (const PeerLost& error) {
    EXPECT_EQ(error.rank(), 1);
  }
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_THROW(child.transport->check(), PeerLost);
  EXPECT_EQ(child.transport->survey(Deadline::in(1s))[1].life, PeerState::Life::dead);
}

TEST(TcpProcess, AStoppedRankIsSilentNotDead) {
  ChildRank child(generate_key());
  EXPECT_EQ(child.transport->survey(Deadline::in(5s))[1].life, PeerState::Life::answers);
  child.signal(SIGSTOP);
  std::this_thread::sleep_for(50ms);
  auto start = Clock::now();
  EXPECT_EQ(child.transport->survey(Deadline::in(200ms))[1].life, PeerState::Life::silent);
  EXPECT_LT(Clock::now() - start, 2s);
  child.signal(SIGCONT);
  EXPECT_EQ(child.transport->survey(Deadline::in(5s))[1].life, PeerState::Life::answers);
  child.transport->check();
}

// An authenticated peer that sends garbage on a channel is an error, not a crash or a hang.
TEST(Tcp, GarbageAfterAuthenticationIsAProtocolError) {
  auto failure = std::make_shared<Failure>();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Fd other(ends[1]);
  std::vector<TcpMember> members(2);
  members[1].world_rank = 1;
  members[1].fd = Fd(ends[0]);
  TcpChannel channel(0, std::move(members), false, failure);
  std::string garbage(200, 'g');
  ASSERT_EQ(::send(other.get(), garbage.data(), garbage.size(), 0), 200);
  Ticket ticket;
  std::byte byte;
  channel.recv(1, {}, {&byte, 1}, ticket);
  EXPECT_THROW(channel.progress(), ProtocolError);
}

// One bit of a payload turned on the way, with and without a checksum over payloads.
TEST(Tcp, APayloadChecksumSeesATurnedBit) {
  for (bool checked : {true, false}) {
    auto failure = std::make_shared<Failure>();
    int ends[2], wire[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire), 0);
    auto channel_of = [&](int rank, int fd) {
      std::vector<TcpMember> members(2);
      members[1].world_rank = 1;
      members[static_cast<std::size_t>(1 - rank)].fd = Fd(fd);
      return std::make_unique<TcpChannel>(rank, std::move(members), checked, failure);
    };
    auto sender = channel_of(0, ends[0]), receiver = channel_of(1, wire[0]);
    Fd from(ends[1]), to(wire[1]);
    std::vector<std::byte> out(1000), in(1000);
    Ticket sent, received;
    sender->send(1, {}, out, sent);
    ASSERT_TRUE(sent.done);
    char frame[2000];
    ssize_t bytes = ::recv(from.get(), frame, sizeof frame, 0);
    ASSERT_EQ(bytes, 1056);
    frame[500] ^= 4;
    ASSERT_EQ(::send(to.get(), frame, 1056, 0), 1056);
    receiver->recv(0, {}, {in.data(), in.size()}, received);
    if (checked) {
      EXPECT_THROW(receiver->progress(), ProtocolError);
    } else {
      EXPECT_TRUE(receiver->progress());
      EXPECT_TRUE(received.done);
    }
  }
}

}  // namespace
}  // namespace trireme::net::test
