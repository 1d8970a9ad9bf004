// The heap of a transport that shares no memory: plain memory, 64-byte aligned.
#pragma once
#include <cstddef>
#include <map>

#include "trireme/base/mutex.h"
#include "trireme/net/transport.h"

namespace trireme::net {

class PlainHeap final : public Heap {
 public:
  ~PlainHeap() override;
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory) noexcept override;
  bool contains(const void* memory, std::size_t bytes) const noexcept override;

 private:
  mutable Mutex mutex_;
  std::map<const std::byte*, std::size_t> blocks_ TRIREME_GUARDED_BY(mutex_);  // sizes as mapped or allocated
};

}  // namespace trireme::net
