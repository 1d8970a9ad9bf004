#include "trireme/grad/heap_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <unordered_map>

#include "trireme/base/mutex.h"
#include "trireme/grad/allocator_api.h"

namespace trireme::grad {

// Blocks that came back, by size, to be used again: their pages are there already, here and at the peers.
struct HeapBirths::Pool {
  bool open = true;
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<std::byte[]>>> free;
};

namespace {

thread_local HeapBirths* current = nullptr;

struct Block {
  std::shared_ptr<std::byte[]> memory;  // keeps the heap alive
  std::size_t bytes = 0;
  std::function<void(Block&&)> back;  // to its pool
};

// The blocks that are out. The range is all that freeing other memory looks at.
struct Births {
  std::atomic<std::uintptr_t> low{UINTPTR_MAX}, high{0};
  Mutex mutex;
  std::unordered_map<void*, Block> blocks TRIREME_GUARDED_BY(mutex);  // which guards all pools too

  bool may_hold(const void* memory) const {
    auto at = reinterpret_cast<std::uintptr_t>(memory);
    return at >= low.load(std::memory_order_relaxed) && at < high.load(std::memory_order_relaxed);
  }
  void* add(Block block) {
    void* memory = block.memory.get();
    auto at = reinterpret_cast<std::uintptr_t>(memory);
    MutexLock lock(mutex);
    low.store(std::min(low.load(std::memory_order_relaxed), at), std::memory_order_relaxed);
    high.store(std::max(high.load(std::memory_order_relaxed), at + block.bytes), std::memory_order_relaxed);
    blocks.emplace(memory, std::move(block));
    return memory;
  }
  // False if it is not one of ours.
  bool remove(void* memory) {
    Block block;  // outlives the lock: its heap may go with it
    MutexLock lock(mutex);
    auto found = blocks.find(memory);
    if (found == blocks.end()) return false;
    block = std::move(found->second);
    blocks.erase(found);
    block.back(std::move(block));
    return true;
  }
};

// Never destroyed: tensors with static lifetime are freed after everything else.
Births& births() {
  static auto* all = new Births;
  return *all;
}

c10::DeleterFnPtr default_deleter = nullptr;

void free_block(void* memory) {
  if (births().may_hold(memory) && births().remove(memory)) return;
  default_deleter(memory);
}

}  // namespace

// LibTorch's own for everything but the sizes asked for.
class HeapAllocator final : public c10::Allocator {
 public:
  explicit HeapAllocator(c10::Allocator* base) : base_(base) {}

  c10::DataPtr allocate(std::size_t bytes) TRIREME_ALLOCATE_CONST override {
    void* memory;
    if (current && bytes >= kInPlaceFrom && std::ranges::binary_search(current->sizes_, bytes)) {
      memory = births().add({current->take(bytes), bytes, [pool = current->pool_](Block&& block) {
                               if (pool->open) pool->free[block.bytes].push_back(std::move(block.memory));
                             }});
    } else {
      memory = base_->allocate(bytes).release_context();
    }
    return {memory, memory, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  TRIREME_COPY_DATA

 private:
  c10::Allocator* base_;
};

namespace {

// Once per process; tensors made before are freed as ever.
void install_allocator() {
  static const bool installed = [] {
    auto* base = c10::GetCPUAllocator();
    default_deleter = base->raw_deleter();
    if (!default_deleter) return false;  // someone else's allocator, which cannot be wrapped: gradients are copied
    c10::SetCPUAllocator(new HeapAllocator(base), 255);
    return true;
  }();
  (void)installed;
}

}  // namespace

bool born_in_heap(const void* memory) {
  if (!births().may_hold(memory)) return false;
  MutexLock lock(births().mutex);
  return births().blocks.contains(const_cast<void*>(memory));
}

std::shared_ptr<std::byte[]> HeapBirths::take(std::size_t bytes) {
  {
    MutexLock lock(births().mutex);
    auto& blocks = pool_->free[bytes];
    if (!blocks.empty()) {
      auto block = std::move(blocks.back());
      blocks.pop_back();
      return block;
    }
  }
  return comm_.allocate_bytes(bytes);
}

HeapBirths::HeapBirths(Communicator& comm, std::vector<std::size_t> sizes)
    : comm_(comm), sizes_(std::move(sizes)), pool_(std::make_shared<Pool>()), previous_(current) {
  std::erase_if(sizes_, [](std::size_t bytes) { return bytes < kInPlaceFrom; });
  std::ranges::sort(sizes_);
  if (sizes_.empty()) return;
  install_allocator();
  current = this;
}

HeapBirths::~HeapBirths() {
  // Several may go in any order.
  HeapBirths** link = &current;
  while (*link && *link != this) link = &(*link)->previous_;
  if (*link) *link = previous_;
  decltype(pool_->free) unused;  // outlives the lock
  MutexLock lock(births().mutex);
  pool_->open = false;
  unused.swap(pool_->free);
}

}  // namespace trireme::grad
