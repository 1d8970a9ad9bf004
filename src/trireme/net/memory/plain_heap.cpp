#include "trireme/net/memory/plain_heap.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>

#include "trireme/base/error.h"

namespace trireme::net {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kMapped = 2 << 20;  // from here on in pages of its own, huge ones where there are any

std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine + (bytes == 0 ? kLine : 0); }

void free_block(std::byte* memory, std::size_t bytes) noexcept {
  if (bytes >= kMapped) {
    ::munmap(memory, bytes);
  } else {
    std::free(memory);
  }
}

}  // namespace

PlainHeap::~PlainHeap() {
  for (auto [memory, bytes] : blocks_) free_block(const_cast<std::byte*>(memory), bytes);
}

std::byte* PlainHeap::allocate(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX - kLine) throw Error(fmt::format("there is no memory of {} bytes", bytes));
  std::size_t size = rounded(bytes);
  void* memory = nullptr;
  if (size >= kMapped) {
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
    if (memory) ::madvise(memory, size, MADV_HUGEPAGE);
  } else {
    memory = std::aligned_alloc(kLine, size);
  }
  if (!memory) throw Error(fmt::format("this host has no memory left for {} bytes", bytes));
  MutexLock lock(mutex_);
  blocks_.emplace(static_cast<std::byte*>(memory), size);
  return static_cast<std::byte*>(memory);
}

void PlainHeap::release(std::byte* memory) noexcept {
  if (!memory) return;
  MutexLock lock(mutex_);
  auto block = blocks_.find(memory);
  TRIREME_CHECK(block != blocks_.end());
  free_block(memory, block->second);
  blocks_.erase(block);
}

bool PlainHeap::contains(const void* memory, std::size_t bytes) const noexcept {
  const auto* begin = static_cast<const std::byte*>(memory);
  MutexLock lock(mutex_);
  auto after = blocks_.upper_bound(begin);
  if (after == blocks_.begin()) return false;
  auto [start, size] = *std::prev(after);
  return bytes <= size && begin - start <= static_cast<std::ptrdiff_t>(size - bytes);
}

}  // namespace trireme::net
