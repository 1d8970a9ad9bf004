#include "trireme/parallel/tensor_memory.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <unordered_map>

#include "trireme/base/mutex.h"
#include "trireme/grad/allocator_api.h"

namespace trireme::parallel {

// Live and peak bytes, of all and of each class. Any thread adds to it.
struct MemoryWatch::Account {
  struct Counter {
    std::atomic<std::int64_t> live{0}, peak{0};

    void add(std::int64_t bytes) {
      const std::int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
      std::int64_t most = peak.load(std::memory_order_relaxed);
      while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
      }
    }
    MemoryUse use() const { return {live.load(std::memory_order_relaxed), peak.load(std::memory_order_relaxed)}; }
  };

  void add(MemoryClass what, std::int64_t bytes) {
    for (Account* at = this; at; at = at->outer.get()) {
      at->all.add(bytes);
      at->by_class[static_cast<std::size_t>(what)].add(bytes);
    }
  }

  std::shared_ptr<Account> outer;
  Counter all;
  std::array<Counter, kMemoryClassNames.size()> by_class;
};

namespace {

using AccountPtr = std::shared_ptr<MemoryWatch::Account>;

thread_local AccountPtr current_account;
thread_local MemoryClass current_class = MemoryClass::rest;

// A block that is counted: it is given back to the account it was taken from.
struct Counted {
  AccountPtr account;
  MemoryClass what = MemoryClass::rest;
  std::int64_t bytes = 0;

  void take() { account->add(what, bytes); }
  void give_back() { account->add(what, -bytes); }
};

// The tensors that are counted, by address. In parts, so that threads seldom meet; never destroyed, for tensors of
// static lifetime are freed after everything else.
class Blocks {
 public:
  void add(void* memory, Counted block) {
    block.take();
    auto& part = part_of(memory);
    MutexLock lock(part.mutex);
    part.blocks.insert_or_assign(memory, std::move(block));
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  // Before the memory is freed: right after, another thread may be given the same address.
  void remove(void* memory) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    auto& part = part_of(memory);
    Counted block;
    {
      MutexLock lock(part.mutex);
      auto found = part.blocks.find(memory);
      if (found == part.blocks.end()) return;
      block = std::move(found->second);
      part.blocks.erase(found);
      count_.fetch_sub(1, std::memory_order_relaxed);
    }
    block.give_back();
  }

 private:
  struct Part {
    Mutex mutex;
    std::unordered_map<void*, Counted> blocks TRIREME_GUARDED_BY(mutex);
  };
  Part& part_of(void* memory) { return parts_[reinterpret_cast<std::uintptr_t>(memory) / 64 % parts_.size()]; }

  std::array<Part, 16> parts_;
  std::atomic<std::int64_t> count_{0};
};

Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}

c10::DeleterFnPtr base_deleter = nullptr;

void free_block(void* memory) {
  blocks().remove(memory);
  base_deleter(memory);
}

// The allocator that was there, of whose blocks those that a watch sees are noted.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* base) : base_(base) {}

  c10::DataPtr allocate(std::size_t bytes) TRIREME_ALLOCATE_CONST override {
    auto data = base_->allocate(bytes);
    if (!current_account || !data.get() || data.get() != data.get_context()) return data;
    void* memory = data.release_context();
    blocks().add(memory, {current_account, current_class, static_cast<std::int64_t>(bytes)});
    return {memory, memory, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  TRIREME_COPY_DATA

 private:
  c10::Allocator* base_;
};

// Once per process. Tensors made before are freed as ever; an allocator that cannot be wrapped counts nothing.
void install_allocator() {
  static const bool installed = [] {
    auto* base = c10::GetCPUAllocator();
    base_deleter = base->raw_deleter();
    if (!base_deleter) return false;
    c10::SetCPUAllocator(new CountingAllocator(base), 255);
    return true;
  }();
  (void)installed;
}

// What keeps a block of the heap, and its count.
struct HeapBlock {
  std::shared_ptr<std::byte[]> memory;
  Counted counted;
  ~HeapBlock() {
    if (counted.account) counted.give_back();
  }
};

}  // namespace

MemoryWatch::MemoryWatch() : account_(std::make_shared<Account>()) {
  install_allocator();
  account_->outer = current_account;
  current_account = account_;
}

MemoryWatch::~MemoryWatch() {
  if (current_account == account_) current_account = account_->outer;
}

MemoryUse MemoryWatch::all() const { return account_->all.use(); }
MemoryUse MemoryWatch::of(MemoryClass what) const { return account_->by_class[static_cast<std::size_t>(what)].use(); }

void MemoryWatch::reset_peak() {
  auto reset = [](Account::Counter& counter) { counter.peak.store(counter.live.load()); };
  reset(account_->all);
  for (auto& counter : account_->by_class) reset(counter);
}

MemoryClassScope::MemoryClassScope(MemoryClass what) : before_(current_class) { current_class = what; }
MemoryClassScope::~MemoryClassScope() { current_class = before_; }

c10::DataPtr heap_memory(Communicator& comm, std::size_t bytes, MemoryClass what) {
  auto* block = new HeapBlock{comm.allocate_bytes(bytes), {current_account, what, static_cast<std::int64_t>(bytes)}};
  if (block->counted.account) block->counted.take();
  return {block->memory.get(), block, [](void* context) { delete static_cast<HeapBlock*>(context); },
          c10::Device(c10::DeviceType::CPU)};
}

torch::Tensor heap_tensor(Communicator& comm, std::size_t elements, torch::ScalarType type, MemoryClass what) {
  const std::size_t bytes = elements * c10::elementSize(type);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, heap_memory(comm, bytes, what));
  return torch::empty({0}, type).set_(storage, 0, {static_cast<std::int64_t>(elements)}, {1});
}

}  // namespace trireme::parallel
