// The inner loops of the optimizers over dense f32 memory, one pass each. An element's result depends on that element
// alone (and, for norms, on fixed blocks), so that neither threads nor vector width change a bit.
#pragma once
#include <cstddef>
#include <span>

namespace trireme::train::kernels {

struct Sgd {
  float lr, momentum, weight_decay;
  bool nesterov;
};
// `m` is the momentum; null without.
void sgd(float* p, const float* g, float* m, std::size_t n, const Sgd& c);

struct Adam {
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta, exact: in f32 the difference would lose digits
  float step;             // lr / (1 - beta1^t)
  float root_correction;  // sqrt(1 - beta2^t)
  float weight_decay;     // added to the gradient
  float keep;             // AdamW: what decay leaves of a weight, 1 without
};
void adam(float* p, const float* g, float* m, float* v, std::size_t n, const Adam& c);

struct Lars {
  float rate;  // lr times the layer's own rate
  float momentum, weight_decay;
};
void lars(float* p, const float* g, float* m, std::size_t n, const Lars& c);

struct Lamb {
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta
  float mean_correction;  // 1 / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float weight_decay;
};
struct Squares {
  double weight, update;
};
// The moments move; the sums of squares of weights and updates are of this one block.
Squares lamb_moments(const float* p, const float* g, float* m, float* v, std::size_t n, const Lamb& c);
// p -= rate * update, the update as lamb_moments counted it.
void lamb_apply(float* p, const float* m, const float* v, std::size_t n, const Lamb& c, float rate);

// Norms are sums over blocks of this many elements, added as a balanced binary tree.
inline constexpr std::size_t kBlock = 4096;
double block_square(const float* x, std::size_t n);
double block_square(const double* x, std::size_t n);
double tree_sum(std::span<const double> terms);

}  // namespace trireme::train::kernels
