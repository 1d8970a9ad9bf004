// A byte ring from one rank to another in shared memory: one writer, one reader. Positions only grow; a piece never
// wraps, so that the reader may use it where it lies.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::net {

struct Ring {
  alignas(64) std::atomic<std::uint64_t> written;   // by the writer, after the bytes
  alignas(64) std::atomic<std::uint64_t> consumed;  // by the reader, once it is done with them

  static constexpr std::size_t kLine = 64;  // pieces start at multiples of this
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  static std::size_t padded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  // Where the writer may write next: contiguous, perhaps empty.
  std::span<std::byte> room(std::size_t capacity) {
    auto at = written.load(std::memory_order_relaxed);
    auto used = at - consumed.load(std::memory_order_acquire);
    auto offset = at % capacity;
    return {data() + offset, std::min(capacity - used, capacity - offset)};
  }
  void commit(std::size_t bytes) {
    written.store(written.load(std::memory_order_relaxed) + padded(bytes), std::memory_order_release);
  }

  // What the reader may read next: contiguous, perhaps empty.
  std::span<const std::byte> ready(std::size_t capacity) {
    auto at = consumed.load(std::memory_order_relaxed);
    auto left = written.load(std::memory_order_acquire) - at;
    auto offset = at % capacity;
    return {data() + offset, std::min<std::size_t>(left, capacity - offset)};
  }
  void release(std::size_t bytes) {
    consumed.store(consumed.load(std::memory_order_relaxed) + padded(bytes), std::memory_order_release);
  }
};

}  // namespace trireme::net
