// One measured rank: obeys the benchmark until told to stop. The same loop serves Trireme and every peer, so that all
// are timed, filled and checked alike; a system only says how it runs one collective.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "trireme/cli/bench/pattern.h"

namespace trireme::bench {

// A library under measurement, as one rank sees it.
class System {
 public:
  virtual ~System() = default;
  // Name and version, one line.
  virtual std::string describe() = 0;
  // Memory for a rotating buffer, 64-byte aligned. By default private to the rank.
  virtual std::byte* allocate(std::size_t bytes);
  virtual void release(std::byte* memory) noexcept;
  // Before the first run of a new job: "ALGORITHM TRANSPORT" as they will be used. Throws ConfigError.
  virtual std::string prepare(const Job& job) = 0;
  // Buffers of as many runs as in_flight() says are left alone until later runs or barrier() have returned.
  virtual void run(const Job& job, const std::byte* input, std::byte* output) = 0;
  // Adds to every 32-bit word in place, as fast as it can: what the memory's rate is measured with.
  virtual void update(std::byte* memory, std::size_t bytes);
  // How many runs may be under way when run() returns, plus one.
  virtual int in_flight() const { return 1; }
  // Ends what is under way, then waits for every rank.
  virtual void barrier() = 0;
};

// Connects to the benchmark at `path` and answers, each with a line "ok …" or "error TEXT":
//   prepare WHAT DTYPE OP COUNT BUFFERS   numbers, as the enums have them → ok ALGORITHM TRANSPORT
//   burst WARMUP ITERATIONS               → ok ITERATIONS ERRORS, then the µs of each iteration as 32-bit floats
//   stream GROUP ITERATIONS               → ok ITERATIONS BYTES, then the µs of processor time that each iteration,
//                                           an in-place update of GROUP buffers or BYTES in all, took
//   release                               → ok: buffers are freed
//   quit                                  → ok, and serve returns true
// Returns false when the benchmark is gone: end the process without waiting for other ranks.
bool serve(System& system, const std::string& path, int rank, int ranks);

}  // namespace trireme::bench
