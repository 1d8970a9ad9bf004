// Memory of a worker that servers on its host map: gradients are read from it and weights written to it without a copy.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "trireme/net/fd.h"
#include "trireme/net/memory/shm_heap.h"

namespace trireme::ps {

// The worker's: an anonymous file that can grow but not shrink, so that nobody who maps it can be made to fault.
class WorkerMemory {
 public:
  WorkerMemory();
  float* allocate(std::size_t count);
  void release(float* memory) noexcept;
  int descriptor() const { return heap_.fd(); }
  std::uint64_t reserve() const { return reserve_; }
  // Where it lies in the file; nothing when it is other memory.
  std::optional<std::uint64_t> offset_of(const float* memory, std::size_t count) const;

 private:
  std::uint64_t reserve_;
  net::ShmHeap heap_;
};

// A server's view of it. Lives on when the worker is gone.
class MappedMemory {
 public:
  // Throws ProtocolError when the descriptor is no such file.
  MappedMemory(net::Fd descriptor, std::uint64_t reserve);
  // Throws ProtocolError when the file has no floats there.
  float* at(std::uint64_t offset, std::uint64_t count) const;

 private:
  net::Fd descriptor_;
  std::uint64_t reserve_;
  net::Mapping mapping_;
};

}  // namespace trireme::ps
