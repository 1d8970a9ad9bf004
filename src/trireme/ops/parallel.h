// Splits work over the cores of the calling thread: the team that LibTorch's operators use too, so that both never
// compete. Inside a body everything runs on its own thread alone.
#pragma once
#include <cstdint>
#include <memory>

namespace trireme::ops {

// How many bodies run at a time when this thread asks for more than one: at::set_num_threads, OMP_NUM_THREADS.
int threads();
// For the calling thread's next calls; where threads cannot be had (ThreadSanitizer), it stays at one.
void set_threads(int count);

namespace internal {
void run_parts(int64_t parts, void (*part)(void* body, int64_t index), void* body);
}

// Calls body(0) … body(parts − 1), each once, in any order, on up to threads() threads; returns when all have ended.
// The body must not throw. Each thread takes the next part that is free, so parts may differ in length.
template <class Body>
void parallel(int64_t parts, Body&& body) {
  if (parts <= 1 || threads() == 1) {
    for (int64_t index = 0; index < parts; ++index) body(index);
    return;
  }
  using Type = std::remove_reference_t<Body>;
  internal::run_parts(
      parts, [](void* it, int64_t index) { (*static_cast<Type*>(it))(index); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace trireme::ops
