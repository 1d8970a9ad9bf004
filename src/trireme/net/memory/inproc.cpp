#include "trireme/net/memory/inproc.h"

#include <new>
#include <unordered_set>

#include "trireme/base/mutex.h"
#include "trireme/net/memory/memory_transport.h"

namespace trireme::net {
namespace {

// What the ranks of one world have allocated. A rank that leaves before another may leave a channel's memory behind,
// for the other still reads it: whatever is left goes with the last rank.
class Blocks {
 public:
  ~Blocks() {
    for (void* block : blocks_) ::operator delete(block, std::align_val_t(64));
  }
  std::byte* allocate(std::size_t bytes) {
    void* block = ::operator new(bytes, std::align_val_t(64));
    MutexLock lock(mutex_);
    blocks_.insert(block);
    return static_cast<std::byte*>(block);
  }
  void release(std::byte* block) noexcept {
    {
      MutexLock lock(mutex_);
      blocks_.erase(block);
    }
    ::operator delete(block, std::align_val_t(64));
  }

 private:
  Mutex mutex_;
  std::unordered_set<void*> blocks_ TRIREME_GUARDED_BY(mutex_);
};

class ProcessHeap : public Heap {
 public:
  explicit ProcessHeap(std::shared_ptr<Blocks> blocks) : blocks_(std::move(blocks)) {}
  std::byte* allocate(std::size_t bytes) override { return blocks_->allocate(bytes); }
  void release(std::byte* memory) noexcept override { blocks_->release(memory); }
  bool contains(const void*, std::size_t) const noexcept override { return true; }

 private:
  std::shared_ptr<Blocks> blocks_;  // shared by the world's ranks
};

}  // namespace

std::vector<std::unique_ptr<Transport>> inproc_world(int ranks) {
  auto bytes = MemoryControl::bytes_for(ranks);
  void* memory = ::operator new(bytes, std::align_val_t(64));
  std::memset(memory, 0, bytes);
  std::shared_ptr<void> keep(memory, [](void* block) { ::operator delete(block, std::align_val_t(64)); });
  auto* control = static_cast<MemoryControl*>(memory);
  control->ranks = static_cast<std::uint32_t>(ranks);
  auto blocks = std::make_shared<Blocks>();
  std::vector<std::unique_ptr<Transport>> world;
  for (int rank = 0; rank < ranks; ++rank) {
    world.push_back(
        std::make_unique<MemoryTransport>(MemoryTransport::Parts{.name = "inproc",
                                                                 .rank = rank,
                                                                 .control = control,
                                                                 .space = {},
                                                                 .heap = std::make_unique<ProcessHeap>(blocks),
                                                                 .keep = keep,
                                                                 .process_fds = {}}));
  }
  return world;
}

}  // namespace trireme::net
