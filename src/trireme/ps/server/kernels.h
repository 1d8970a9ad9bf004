// The inner loops of a server over dense f32 memory, one pass each, besides those of optimizers (room optim). An
// element's result depends on that element alone.
#pragma once
#include <cstddef>

namespace trireme::ps::kernels {

// into = a + b, and into += b.
void add(float* into, const float* a, const float* b, std::size_t n);
void add_to(float* into, const float* b, std::size_t n);
// into = a - b.
void subtract(float* into, const float* a, const float* b, std::size_t n);

// Sums over x, what a message left of it, and what the message said: the difference of both.
struct Said {
  double square = 0, square_left = 0, product = 0, square_said = 0;  // product: of x and what was said
};
Said said_of(const float* x, const float* left, std::size_t n);

// into = from, past the caches: for what this core does not read again. Followed by stream_end() before others may
// look.
void stream(float* into, const float* from, std::size_t n);
void stream_end();

}  // namespace trireme::ps::kernels
