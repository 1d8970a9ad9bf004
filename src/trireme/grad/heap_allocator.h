// Gradients are born where they are exchanged: while a HeapBirths lives, LibTorch's CPU tensors of the sizes it names
// that its thread makes lie in the communicator's heap. Autograd hands such a tensor over as a parameter's gradient,
// and peers on this host reduce it in place: no copy into a bucket, none out of it.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/sync/exchange/bucket_layout.h"

namespace trireme::grad {

// Below this a copy costs less than a call of its own.
using sync::kInPlaceFrom;

// Whether this memory was made by a HeapBirths. Any thread.
bool born_in_heap(const void* memory);

class HeapBirths {
 public:
  // Of these sizes in bytes, those from kInPlaceFrom on. Belongs to the thread that makes it; one per thread at a time
  // counts, the newest. The communicator must outlive it; the tensors may outlive both.
  HeapBirths(Communicator& comm, std::vector<std::size_t> sizes);
  ~HeapBirths();
  HeapBirths(const HeapBirths&) = delete;
  HeapBirths& operator=(const HeapBirths&) = delete;

 private:
  friend class HeapAllocator;
  struct Pool;
  std::shared_ptr<std::byte[]> take(std::size_t bytes);

  Communicator& comm_;
  std::vector<std::size_t> sizes_;  // ascending
  std::shared_ptr<Pool> pool_;      // shared: blocks find their way back to it
  HeapBirths* previous_;
};

}  // namespace trireme::grad
