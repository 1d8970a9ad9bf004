// What the soak of the parameter server and its workers agree on.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>

#include "trireme/ps/client/client.h"

namespace trireme::soak {

inline constexpr int kServers = 3, kShardsPerServer = 4;
inline constexpr std::size_t kShards = kServers * kShardsPerServer;
inline constexpr std::size_t kShardElements = 4096;

// Worker w owns two elements of every shard: how many of its pushes took effect, and the sum of what each adds. A lost
// push and one that was applied twice cannot make up for each other in both.
inline constexpr std::uint32_t kMostWorkers = kShardElements / 2;
inline float mark_of(std::uint64_t sequence) { return static_cast<float>(sequence % 61 + 1); }

// What a worker writes to its file before (answered = 0) and after each push; one write each, so that a kill leaves
// whole records.
struct Entry {
  std::uint64_t sequence = 0;
  std::int64_t answered_ns = 0;  // of the clock that all processes share
};

inline ps::JobSpec job() {
  ps::JobSpec spec;
  spec.tensors = {{"counts", kShards * kShardElements, 1}};
  spec.consistency = ps::Consistency::asynchronous();
  return spec;
}

void add_worker(CLI::App& app);  // ps_soak_worker.cpp

}  // namespace trireme::soak
