// Passes over many numbers at the speed of memory, forward and backward. On the team of the calling thread; the same
// bits on any number of threads.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace trireme::ops {

enum class Activation {
  none,
  relu,       // max(x, 0)
  gelu,       // x·Φ(x), Φ by erf
  gelu_tanh,  // x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
};
inline constexpr std::array<Activation, 4> kActivations{Activation::none, Activation::relu, Activation::gelu,
                                                        Activation::gelu_tanh};
constexpr std::string_view name(Activation activation) {
  constexpr std::array<std::string_view, 4> kNames{"none", "relu", "gelu", "gelu_tanh"};
  return kNames[static_cast<std::size_t>(activation)];
}

// y = f(x); y may be x.
void activation_forward(Activation activation, int64_t n, const float* x, float* y);
// d_x = f'(x)·d_y; d_x may be d_y. Of relu, x may be y.
void activation_backward(Activation activation, int64_t n, const float* x, const float* d_y, float* d_x);

// Rows of `columns`: sum = x + bias and y = f(sum). `sum` may be x or, where backward does not ask for it, null.
void bias_activation_forward(Activation activation, int64_t rows, int64_t columns, const float* x, const float* bias,
                             float* sum, float* y);
// d_x as above, and d_bias, its sums over the rows.
void bias_activation_backward(Activation activation, int64_t rows, int64_t columns, const float* sum, const float* d_y,
                              float* d_x, float* d_bias);

// y = x with a share of the numbers set to zero and the rest times 1 / (1 − share), plus `residual` unless null; what
// is dropped depends on the seed and the place alone, so backward is the same function of the gradient. y may be x or
// residual. 0 ≤ share < 1.
void dropout(int64_t n, float share, uint64_t seed, const float* x, const float* residual, float* y);

}  // namespace trireme::ops
