#include "trireme/net/memory/shm_heap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/base/files/file_limit.h"
#include "trireme/base/text/size.h"

namespace trireme::net {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGrowth = 16 << 20;
constexpr std::size_t kPunch = 1 << 20;  // freed pieces of this size go back to the host

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Mapping::Mapping(int fd, std::size_t bytes) : bytes_(bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) {
    throw Error(fmt::format("cannot map {} of shared memory: {}; try a smaller TRIREME_HEAP_RESERVE",
                            format_size(bytes), std::strerror(errno)));
  }
  base_ = static_cast<std::byte*>(at);
}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

int resize_memfd(int fd, std::size_t bytes) {
  const NoSizeSignal as_error;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

std::string memfd_reason(int error) {
  const std::string why = std::strerror(error);
  return error == EFBIG ? why + ": the limit on file sizes (ulimit -f) holds for shared memory too; raise it" : why;
}

int create_memfd(const char* name, std::size_t bytes) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) throw Error(fmt::format("cannot create shared memory: {}", std::strerror(errno)));
  if (bytes == 0) return fd;
  if (const int error = resize_memfd(fd, bytes); error != 0) {
    close(fd);
    throw Error(fmt::format("cannot give shared memory '{}' {}: {}", name, format_size(bytes), memfd_reason(error)));
  }
  return fd;
}

std::size_t ShmHeap::reservation() {
  const char* set = std::getenv("TRIREME_HEAP_RESERVE");
  std::size_t bytes = set != nullptr ? parse_size(set, "TRIREME_HEAP_RESERVE") : std::size_t{64} << 30;
  constexpr std::size_t kMost = std::size_t{1} << 44;
  if (bytes < (std::size_t{64} << 20) || bytes > kMost) {
    throw ConfigError("TRIREME_HEAP_RESERVE must lie between 64M and 16T");
  }
  return round_up(bytes, kPage);
}

ShmHeap::ShmHeap(int fd, std::size_t reserve) : fd_(fd), mapping_(fd, reserve) { free_[0] = reserve; }

ShmHeap::~ShmHeap() { close(fd_); }

void ShmHeap::grow_to(std::size_t bytes) {
  if (bytes <= file_bytes_) return;
  auto target = std::min(round_up(bytes, kGrowth), mapping_.bytes());
  if (const int error = resize_memfd(fd_, target); error != 0) {
    throw Error(fmt::format("cannot grow the shared heap to {}: {}", format_size(target), memfd_reason(error)));
  }
  file_bytes_ = target;
}

std::byte* ShmHeap::allocate(std::size_t bytes) {
  // Whole pages for large pieces, so that they can be given back one by one.
  auto size = round_up(std::max<std::size_t>(bytes, 1), bytes >= kPage ? kPage : 64);
  MutexLock lock(mutex_);
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    auto offset = piece->first;
    auto start = size >= kPage ? round_up(offset, kPage) : offset;
    auto end = offset + piece->second;
    if (start > end || end - start < size) continue;
    grow_to(start + size);
    free_.erase(piece);
    if (start > offset) free_[offset] = start - offset;
    if (end > start + size) free_[start + size] = end - start - size;
    used_[start] = size;
    return mapping_.base() + start;
  }
  throw Error(fmt::format("the shared heap of {} has no {} left; raise TRIREME_HEAP_RESERVE",
                          format_size(mapping_.bytes()), format_size(bytes)));
}

void ShmHeap::release(std::byte* memory) noexcept {
  if (memory == nullptr) return;
  MutexLock lock(mutex_);
  auto piece = used_.find(static_cast<std::size_t>(memory - mapping_.base()));
  TRIREME_CHECK(piece != used_.end());
  auto [offset, size] = *piece;
  used_.erase(piece);
  if (size >= kPunch) {
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size));
  }
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
    std::prev(next)->second += size;
  } else {
    free_[offset] = size;
  }
}

bool ShmHeap::contains(const void* memory, std::size_t bytes) const noexcept {
  auto at = reinterpret_cast<std::uintptr_t>(memory);
  auto base = reinterpret_cast<std::uintptr_t>(mapping_.base());
  return at >= base && at - base <= mapping_.bytes() && bytes <= mapping_.bytes() - (at - base);
}

}  // namespace trireme::net
