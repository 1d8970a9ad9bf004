// What every transport must do where calls do not match, a rank gives up, or one leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/net/transports.h"

namespace trireme::net::test {
namespace {

using ::testing::HasSubstr;

class Failure : public Conformance {};

TEST_P(Failure, NamesBothSidesOfAMismatch) {
  make(2);
  auto failures = run([&](Transport& transport, Channel& channel) {
    Ticket tickets[2];
    std::vector<std::byte> out(400), in(400);
    CallId ours = call(17, 100);
    ours.dtype = static_cast<std::uint8_t>(DType::f32);
    if (channel.rank() == 1) {
      ours.what = kBroadcast;
      ours.count = 50;
    }
    channel.send(1 - channel.rank(), ours, out, tickets[0]);
    channel.recv(1 - channel.rank(), ours, {in.data(), in.size()}, tickets[1]);
    try {
      finish(transport, channel, tickets);
    } catch (const Error&) {
      channel.cancel();
      throw;
    }
  });
  for (const auto& failure : failures) {
    EXPECT_TRUE(is<Mismatch>(failure) || is<PeerLost>(failure)) << text_of(failure);
  }
  bool named = false;
  for (const auto& failure : failures) {
    if (!is<Mismatch>(failure)) continue;
    named = true;
    EXPECT_THAT(text_of(failure), HasSubstr("rank 0 called all-reduce #17 of 100 f32 (sum)"));
    EXPECT_THAT(text_of(failure), HasSubstr("rank 1 called broadcast #17 of 50 f32"));
  }
  EXPECT_TRUE(named);
}

TEST_P(Failure, ALengthThatDiffersIsAMismatch) {
  make(2);
  auto failures = run([&](Transport& transport, Channel& channel) {
    Ticket ticket;
    std::vector<std::byte> data(channel.rank() == 0 ? 100 : 99);
    if (channel.rank() == 0) {
      channel.send(1, call(3, 100), data, ticket);
    } else {
      channel.recv(0, call(3, 100), {data.data(), data.size()}, ticket);
    }
    finish(transport, channel, {&ticket, 1});
  });
  EXPECT_TRUE(is<Mismatch>(failures[1])) << text_of(failures[1]);
  EXPECT_THAT(text_of(failures[1]), HasSubstr("100"));
  EXPECT_THAT(text_of(failures[1]), HasSubstr("99"));
}

TEST_P(Failure, EverybodyHearsAnAbort) {
  make(4);
  auto started = Clock::now();
  auto failures = run([&](Transport& transport, Channel& channel) {
    if (channel.rank() == 2) {
      std::this_thread::sleep_for(20ms);
      transport.abort("the sky fell");
    }
    Ticket ticket;
    std::byte byte;
    channel.recv((channel.rank() + 1) % 4, call(0), {&byte, 1}, ticket);
    try {
      finish(transport, channel, {&ticket, 1});
    } catch (...) {
      channel.cancel();
      // Everyone stays until all have heard it.
      std::this_thread::sleep_for(200ms);
      EXPECT_THROW(transport.check(), Aborted);
      throw;
    }
  });
  for (int rank : {0, 1, 3}) {
    const auto& failure = failures[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(is<Aborted>(failure)) << rank << ": " << text_of(failure);
    EXPECT_THAT(text_of(failure), HasSubstr("the sky fell"));
    EXPECT_THAT(text_of(failure), HasSubstr("rank 2"));
  }
  EXPECT_LT(Clock::now() - started, 5s);
}

TEST_P(Failure, APeerThatLeftIsLostToWhoWaitsForIt) {
  make(3);
  std::atomic<int> waiting = 0;
  auto failures = run_ranks(3, [&](int rank) {
    auto& transport = world[static_cast<std::size_t>(rank)];
    auto channel = transport->open(1, everyone(3), Deadline::in(10s));
    Ticket ticket;
    std::byte byte;
    if (rank == 1) {
      while (waiting < 2) std::this_thread::yield();
      channel.reset();
      transport.reset();
      return;
    }
    channel->recv(1, call(0), {&byte, 1}, ticket);
    ++waiting;
    finish(*transport, *channel, {&ticket, 1});
  });
  for (int rank : {0, 2}) {
    const auto& failure = failures[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(is<PeerLost>(failure)) << rank << ": " << text_of(failure);
    EXPECT_THAT(text_of(failure), HasSubstr("rank 1"));
  }
}

// A rank that is done and goes is no reason for the others to fail.
TEST_P(Failure, ACleanExitBreaksNothing) {
  make(3);
  std::atomic<bool> gone = false;
  auto failures = run_ranks(3, [&](int rank) {
    auto& transport = world[static_cast<std::size_t>(rank)];
    auto channel = transport->open(1, everyone(3), Deadline::in(10s));
    Ticket tickets[2];
    auto out = pattern(1000, rank, 1 - rank, 0);
    std::vector<std::byte> in(1000);
    if (rank == 2) {
      channel->send(0, call(9), out, tickets[0]);
      finish(*transport, *channel, {tickets, 1});
      channel.reset();
      transport.reset();
      gone = true;
      return;
    }
    while (!gone) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);
    transport->check();
    channel->send(1 - rank, call(0), out, tickets[0]);
    channel->recv(1 - rank, call(0), {in.data(), in.size()}, tickets[1]);
    finish(*transport, *channel, tickets);
    EXPECT_EQ(in, pattern(1000, 1 - rank, rank, 0));
    if (rank == 0) {
      // What it had sent before is still there.
      channel->recv(2, call(9), {in.data(), in.size()}, tickets[0]);
      finish(*transport, *channel, {tickets, 1});
      EXPECT_EQ(in, pattern(1000, 2, -1, 0));
    }
    while (channel->progress()) {
    }
  });
  rethrow_first(failures);
}

INSTANTIATE_TEST_SUITE_P(Transports, Failure, ::testing::ValuesIn(world_factories()),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace trireme::net::test
