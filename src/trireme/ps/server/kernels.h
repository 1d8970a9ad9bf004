// The inner loops of a server over dense f32 memory, one pass each. An element's result depends on that element alone.
#pragma once
#include <cstddef>

namespace trireme::ps::kernels {

struct Sgd {
  float lr, momentum, weight_decay;
  bool nesterov;
};
// `m` is the momentum; null without.
void sgd(float* w, const float* g, float* m, std::size_t n, const Sgd& c);

struct Adam {
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta, exact: in f32 the difference would lose digits
  float step;             // lr / (1 - beta1^t)
  float root_correction;  // sqrt(1 - beta2^t)
  float weight_decay;     // added to the gradient
  float keep;             // decoupled decay: what it leaves of a weight, 1 without
};
void adam(float* w, const float* g, float* m, float* v, std::size_t n, const Adam& c);

// A whole round in one pass: the sum of some gradients, in order, the update, and copies of the new weights.
struct Round {
  float* w;
  float* m;  // as above
  const float* const* gradients;
  std::size_t parts;  // at least one
  float* const* copies;
  std::size_t copied;
  std::size_t n;
  bool past_caches;  // whether the copies are written so
};
void sgd_round(const Round& round, const Sgd& c);

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
