#include "trireme/net/inproc.h"

#include <new>

#include "trireme/net/memory_transport.h"

namespace trireme::net {
namespace {

class ProcessHeap : public Heap {
 public:
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new(bytes, std::align_val_t(64)));
  }
  void release(std::byte* memory) noexcept override { ::operator delete(memory, std::align_val_t(64)); }
  bool contains(const void*, std::size_t) const noexcept override { return true; }
};

}  // namespace

std::vector<std::unique_ptr<Transport>> inproc_world(int ranks) {
  auto bytes = MemoryControl::bytes_for(ranks);
  void* memory = ::operator new(bytes, std::align_val_t(64));
  std::memset(memory, 0, bytes);
  std::shared_ptr<void> keep(memory, [](void* block) { ::operator delete(block, std::align_val_t(64)); });
  auto* control = static_cast<MemoryControl*>(memory);
  control->ranks = static_cast<std::uint32_t>(ranks);
  std::vector<std::unique_ptr<Transport>> world;
  for (int rank = 0; rank < ranks; ++rank) {
    world.push_back(std::make_unique<MemoryTransport>(MemoryTransport::Parts{.name = "inproc",
                                                                             .rank = rank,
                                                                             .control = control,
                                                                             .space = {},
                                                                             .heap = std::make_unique<ProcessHeap>(),
                                                                             .keep = keep,
                                                                             .process_fds = {}}));
  }
  return world;
}

}  // namespace trireme::net
