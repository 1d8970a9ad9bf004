// A heap in a memfd that other processes map. The whole reservation is mapped at once and costs address space only;
// the file grows as it is used, so no mapping ever moves. Nothing is left when the last process ends.
#pragma once
#include <map>
#include <utility>

#include "trireme/base/mutex.h"
#include "trireme/net/transport.h"

namespace trireme::net {

// A shared mapping of a file, whole.
class Mapping {
 public:
  // Takes `bytes` of address space over `fd`, which may be shorter now and grow. Throws Error.
  Mapping(int fd, std::size_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  std::size_t bytes_;
};

// A new anonymous file of `bytes` bytes of zeros, closed on exec. Throws Error.
int create_memfd(const char* name, std::size_t bytes);

class ShmHeap : public Heap {
 public:
  // How much address space a heap takes: TRIREME_HEAP_RESERVE, or 64 GiB.
  static std::size_t reservation();

  // Owns `fd`.
  ShmHeap(int fd, std::size_t reserve);
  ~ShmHeap() override;
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory) noexcept override;
  bool contains(const void* memory, std::size_t bytes) const noexcept override;
  std::byte* base() const { return mapping_.base(); }
  int fd() const { return fd_; }

 private:
  void grow_to(std::size_t bytes) TRIREME_REQUIRES(mutex_);

  int fd_;
  Mapping mapping_;
  Mutex mutex_;
  // Free pieces and pieces in use by offset; free neighbours are always joined.
  std::map<std::size_t, std::size_t> free_ TRIREME_GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> used_ TRIREME_GUARDED_BY(mutex_);
  std::size_t file_bytes_ TRIREME_GUARDED_BY(mutex_) = 0;
};

}  // namespace trireme::net
