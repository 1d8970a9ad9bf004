// Worlds of threads over every transport, for tests: one line per factory.
#pragma once
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/net/memory/inproc.h"
#include "trireme/net/memory/shm.h"
#include "trireme/net/tcp/tcp.h"

namespace trireme::net::test {

using World = std::vector<std::unique_ptr<Transport>>;

// Runs `body(rank)` on a thread per rank. A failure of one is returned once all have ended.
inline std::vector<std::exception_ptr> run_ranks(int ranks, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();
  return failures;
}

inline std::string text_of(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

template <typename Kind>
bool is(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Kind&) {
    return true;
  } catch (...) {
  }
  return false;
}

inline void rethrow_first(const std::vector<std::exception_ptr>& failures) {
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

inline bool has_ipv6() {
  try {
    listen_at(resolve("::1", 0).front());
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Rank 0 inherits a listener at `host`, as from a launcher.
inline World tcp_world(int ranks, const std::string& host = "127.0.0.1", ConnectOptions options = {}) {
  World world(static_cast<std::size_t>(ranks));
  Fd listener = listen_at(resolve(host, 0).front());
  Key key = generate_key();
  WorldSpec spec;
  spec.size = spec.local_size = ranks;
  spec.job = "test";
  spec.rendezvous = to_string(local_address(listener.get()));
  int fd = listener.release();
  rethrow_first(run_ranks(ranks, [&](int rank) {
    WorldSpec mine = spec;
    mine.rank = mine.local_rank = rank;
    if (rank == 0) mine.listen_fd = fd;
    world[static_cast<std::size_t>(rank)] = connect_tcp(mine, options, key);
  }));
  return world;
}

struct WorldFactory {
  std::string name;
  std::function<World(int ranks)> make;
};

inline std::vector<WorldFactory> world_factories() {
  std::vector<WorldFactory> factories{
      {"inproc", [](int ranks) { return inproc_world(ranks); }},
      {"shm", [](int ranks) { return shm_world_of_threads(ranks); }},
      {"tcp", [](int ranks) { return tcp_world(ranks); }},
      {"tcp_checked", [](int ranks) { return tcp_world(ranks, "127.0.0.1", {.payload_checksum = true}); }},
  };
  if (has_ipv6()) factories.push_back({"tcp_ipv6", [](int ranks) { return tcp_world(ranks, "::1"); }});
  return factories;
}

}  // namespace trireme::net::test
