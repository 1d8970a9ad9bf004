// What every transport must do, whatever it is made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "tests/net/transports.h"
#include "trireme/base/dtype.h"
#include "trireme/net/transport.h"

namespace trireme::net::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_P(Conformance, KnowsItsPlace) {
  make(3);
  rethrow_first(run([&](Transport& transport, Channel& channel) {
    EXPECT_EQ(transport.size(), 3);
    EXPECT_EQ(transport.rank(), channel.rank());
    EXPECT_EQ(channel.size(), 3);
    EXPECT_EQ(channel.world_rank(2), 2);
    EXPECT_EQ(channel.waiting_for(), -1);
    EXPECT_FALSE(transport.name().empty());
  }));
}

TEST_P(Conformance, OneRankAlone) {
  make(1);
  rethrow_first(run([&](Transport& transport, Channel& channel) {
    EXPECT_EQ(channel.size(), 1);
    EXPECT_FALSE(channel.progress());
    transport.check();
    EXPECT_EQ(transport.survey(Deadline::in(1s)).size(), 1u);
  }));
}

// Every pair, both directions at once, every size around the piece and beyond the buffers.
TEST_P(Conformance, ExchangesEverySizeBothWays) {
  const std::vector<std::size_t> sizes{0, 1, 63, 64, 65, 2047, 2048, 4096, 16384, 100001, 1 << 20};
  make(3);
  rethrow_first(run([&](Transport& transport, Channel& channel) {
    int me = channel.rank(), ranks = channel.size();
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      std::vector<std::vector<std::byte>> out(3), in(3);
      std::vector<Ticket> tickets(6);
      for (int peer = 0; peer < ranks; ++peer) {
        auto p = static_cast<std::size_t>(peer);
        tickets[2 * p].done = tickets[2 * p + 1].done = true;
        if (peer == me) continue;
        out[p] = pattern(sizes[k], me, peer, static_cast<int>(k));
        in[p].resize(sizes[k]);
        channel.send(peer, call(k, sizes[k]), out[p], tickets[2 * p]);
        channel.recv(peer, call(k, sizes[k]), {in[p].data(), sizes[k]}, tickets[2 * p + 1]);
      }
      finish(transport, channel, tickets);
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == me) continue;
        EXPECT_EQ(in[static_cast<std::size_t>(peer)], pattern(sizes[k], peer, me, static_cast<int>(k))) << sizes[k];
      }
    }
    auto sum = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    EXPECT_EQ(channel.counters().bytes_sent, 2 * sum);
    EXPECT_EQ(channel.counters().messages_sent, 2 * sizes.size());
  }));
}

// Many posted at once complete in order, small and large mixed, receives posted before and after the sends.
TEST_P(Conformance, KeepsOrderAmongManyPosted) {
  constexpr int kMessages = 100;
  make(2);
  auto size_of_message = [](int i) { return static_cast<std::size_t>(i % 7 == 0 ? 200000 + i : (i * 37) % 500); };
  rethrow_first(run([&](Transport& transport, Channel& channel) {
    std::vector<Ticket> tickets(kMessages);
    std::vector<std::vector<std::byte>> data(kMessages);
    for (int i = 0; i < kMessages; ++i) {
      auto at = static_cast<std::size_t>(i);
      std::size_t bytes = size_of_message(i);
      if (channel.rank() == 0) {
        data[at] = pattern(bytes, 0, 1, i);
        channel.send(1, call(at, bytes), data[at], tickets[at]);
      } else {
        data[at].resize(bytes);
        channel.recv(0, call(at, bytes), {data[at].data(), bytes}, tickets[at]);
      }
    }
    finish(transport, channel, tickets);
    for (int i = 0; channel.rank() == 1 && i < kMessages; ++i) {
      EXPECT_EQ(data[static_cast<std::size_t>(i)], pattern(size_of_message(i), 0, 1, i)) << i;
    }
  }));
}

void add_u32(void* into, const void* from, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    static_cast<std::uint32_t*>(into)[i] += static_cast<const std::uint32_t*>(from)[i];
  }
}

TEST_P(Conformance, ReducesWhatItReceives) {
  make(2);
  for (std::size_t count : {0, 1, 15, 16, 17, 1000, 65537, 300001}) {
    rethrow_first(run([&](Transport& transport, Channel& channel) {
      std::vector<std::uint32_t> mine(count), theirs(count);
      for (std::size_t i = 0; i < count; ++i) {
        mine[i] = static_cast<std::uint32_t>(i * (channel.rank() + 1));
        theirs[i] = mine[i];
      }
      Ticket tickets[2];
      int peer = 1 - channel.rank();
      Sink sink{reinterpret_cast<std::byte*>(mine.data()), 4 * count, add_u32, 4};
      channel.recv(peer, call(0, count), sink, tickets[0]);
      channel.send(peer, call(0, count), std::as_bytes(std::span(theirs)), tickets[1]);
      finish(transport, channel, tickets);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], static_cast<std::uint32_t>(3 * i)) << i;
    }));
  }
}

// Unequal rates: the receiver wakes up long after the buffers are full.
TEST_P(Conformance, WaitsForASlowReceiver) {
  constexpr std::size_t kBytes = 24 << 20;
  make(2);
  rethrow_first(run([&](Transport& transport, Channel& channel) {
    Ticket ticket;
    if (channel.rank() == 0) {
      auto data = pattern(kBytes, 0, 1, 0);
      channel.send(1, call(0, kBytes), data, ticket);
      finish(transport, channel, {&ticket, 1});
    } else {
      std::this_thread::sleep_for(50ms);
      std::vector<std::byte> data(kBytes);
      channel.recv(0, call(0, kBytes), {data.data(), kBytes}, ticket);
      finish(transport, channel, {&ticket, 1});
      EXPECT_EQ(data, pattern(kBytes, 0, 1, 0));
    }
  }));
}

TEST_P(Conformance, SubgroupsAndSeveralChannelsAreSeparate) {
  make(4);
  rethrow_first(run_ranks(4, [&](int rank) {
    Transport& transport = *world[static_cast<std::size_t>(rank)];
    // Members in another order than in the world: ranks of a channel are places in the list.
    std::vector<int> half = rank % 2 == 0 ? std::vector{2, 0} : std::vector{1, 3};
    auto first = transport.open(static_cast<std::uint64_t>(10 + rank % 2), half, Deadline::in(10s));
    auto second = transport.open(static_cast<std::uint64_t>(20 + rank % 2), half, Deadline::in(10s));
    EXPECT_EQ(first->world_rank(first->rank()), rank);
    int peer = 1 - first->rank();
    int peer_world = first->world_rank(peer);
    Ticket tickets[4];
    std::vector<std::byte> in_first(100), in_second(200);
    auto out_first = pattern(100, rank, peer_world, 1), out_second = pattern(200, rank, peer_world, 2);
    second->send(peer, call(0), out_second, tickets[0]);
    first->send(peer, call(0), out_first, tickets[1]);
    first->recv(peer, call(0), {in_first.data(), 100}, tickets[2]);
    second->recv(peer, call(0), {in_second.data(), 200}, tickets[3]);
    finish(transport, *first, std::span(tickets).subspan(1, 2));
    finish(transport, *second, std::span(tickets).subspan(3, 1));
    EXPECT_EQ(in_first, pattern(100, peer_world, rank, 1));
    EXPECT_EQ(in_second, pattern(200, peer_world, rank, 2));
  }));
}

TEST_P(Conformance, SurveySaysWhatEveryoneDoes) {
  make(3);
  std::atomic<int> entered = 0, surveyed = 0;
  rethrow_first(run([&](Transport& transport, Channel& channel) {
    auto rank = static_cast<std::uint64_t>(channel.rank());
    transport.enter(call(100 + rank, rank));
    if (rank == 1) transport.leave();
    ++entered;
    while (entered < 3) std::this_thread::yield();
    auto states = transport.survey(Deadline::in(5s));
    ++surveyed;
    while (surveyed < 3) std::this_thread::yield();
    ASSERT_EQ(states.size(), 3u);
    for (std::uint64_t peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(states[peer].life, PeerState::Life::answers);
      EXPECT_EQ(states[peer].call, call(100 + peer, peer));
      EXPECT_EQ(states[peer].in_call, peer != 1);
    }
  }));
}

TEST_P(Conformance, CancelForgetsWhatIsPosted) {
  make(2);
  rethrow_first(run([&](Transport&, Channel& channel) {
    {
      Ticket ticket;
      std::byte byte;
      channel.recv(1 - channel.rank(), call(0), {&byte, 1}, ticket);
      EXPECT_EQ(channel.waiting_for(), 1 - channel.rank());
      channel.cancel();
    }
    EXPECT_EQ(channel.waiting_for(), -1);
  }));
}

TEST_P(Conformance, HeapGivesAlignedMemoryItKnows) {
  make(1);
  Heap& heap = world[0]->heap();
  std::vector<std::byte*> blocks;
  for (std::size_t bytes : {1, 63, 64, 100, 4096, 3 << 20}) {
    std::byte* block = heap.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
    std::memset(block, 7, bytes);
    EXPECT_TRUE(heap.contains(block, bytes));
    EXPECT_TRUE(heap.contains(block + bytes - 1, 1));
    blocks.push_back(block);
  }
  for (auto* block : blocks) heap.release(block);
}

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, ::testing::ValuesIn(world_factories()),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace trireme::net::test
