// Worlds of every transport, each rank with a channel, for tests of what all must do.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "tests/net/worlds.h"
#include "trireme/base/dtype.h"

namespace trireme::net::test {

using namespace std::chrono_literals;

inline constexpr std::uint8_t kBroadcast = 0, kAllReduce = 6;

inline CallId call(std::uint64_t sequence, std::uint64_t count = 0) {
  return {.sequence = sequence, .count = count, .what = kAllReduce, .dtype = static_cast<std::uint8_t>(DType::u8)};
}

inline std::vector<int> everyone(int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// Bytes that tell who sent which message to whom.
inline std::vector<std::byte> pattern(std::size_t bytes, int from, int to, int message) {
  std::vector<std::byte> data(bytes);
  std::uint32_t state = static_cast<std::uint32_t>(from * 7919 + to * 104729 + message * 15485863 + 1);
  for (auto& byte : data) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return data;
}

inline void finish(Transport& transport, Channel& channel, std::span<const Ticket> tickets, double seconds = 20) {
  auto deadline = Deadline::in_seconds(seconds);
  auto done = [&] { return std::all_of(tickets.begin(), tickets.end(), [](const Ticket& t) { return t.done; }); };
  for (int quiet = 0; !done();) {
    quiet = channel.progress() ? 0 : quiet + 1;
    if (quiet < 10) continue;
    channel.idle(1ms);
    // As a wait that lasts does, to see peers that left.
    if (int peer = channel.waiting_for(); peer >= 0 && quiet % 10 == 0) transport.check_peer(channel.world_rank(peer));
    if (deadline.passed()) throw Timeout(channel.waiting_for(), "the test waited too long");
  }
}

class Conformance : public ::testing::TestWithParam<WorldFactory> {
 protected:
  void make(int ranks) { world = GetParam().make(ranks); }
  // Every rank, with a channel of all.
  std::vector<std::exception_ptr> run(const std::function<void(Transport&, Channel&)>& body) {
    int ranks = static_cast<int>(world.size());
    return run_ranks(ranks, [&](int rank) {
      Transport& transport = *world[static_cast<std::size_t>(rank)];
      auto channel = transport.open(1, everyone(ranks), Deadline::in(10s));
      body(transport, *channel);
    });
  }
  World world;
};

}  // namespace trireme::net::test
