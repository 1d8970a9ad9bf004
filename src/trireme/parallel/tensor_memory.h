// How much memory a worker's tensors take, now and at most: what sharding and computing again are for.
//
// A MemoryWatch counts the CPU tensors that its thread makes while it lives, wherever and whenever they are freed, and
// what sharding puts into the transport's heap. Workers that are threads of one process each have their own.
#pragma once
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "trireme/collective/run/communicator.h"

namespace trireme::parallel {

enum class MemoryClass : std::uint8_t { parameters, gradients, optimizer, rest };
inline constexpr std::array<std::string_view, 4> kMemoryClassNames{"parameters", "gradients", "optimizer", "rest"};

struct MemoryUse {
  std::int64_t live = 0, peak = 0;  // bytes
};

class MemoryWatch {
 public:
  // Belongs to the thread that makes it. Within another one both count.
  MemoryWatch();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Of tensors made since its start. Any thread.
  MemoryUse all() const;
  MemoryUse of(MemoryClass what) const;
  // The peak counts from here on.
  void reset_peak();

  struct Account;

 private:
  std::shared_ptr<Account> account_;  // shared: tensors that outlive the watch still hold it
};

// What its thread makes while it lives counts as this; without one, as the rest: activations.
class MemoryClassScope {
 public:
  explicit MemoryClassScope(MemoryClass what);
  ~MemoryClassScope();
  MemoryClassScope(const MemoryClassScope&) = delete;
  MemoryClassScope& operator=(const MemoryClassScope&) = delete;

 private:
  MemoryClass before_;
};

// Memory that peers on this host read directly, counted as `what` until the last that holds it lets go of it.
c10::DataPtr heap_memory(Communicator& comm, std::size_t bytes, MemoryClass what);
// A row of elements in such memory, not set to anything.
torch::Tensor heap_tensor(Communicator& comm, std::size_t elements, torch::ScalarType type, MemoryClass what);

}  // namespace trireme::parallel
