// Batch normalization of f32 activations, [rows][channels] in memory (channels last: a row is a pixel), with the
// addition of a skip connection and ReLU in the same pass. Training forward reads the input twice, backward reads its
// three tensors twice: the least that memory allows, since a channel's sums must be known before its first element is
// written.
//
// Runs on the team of the calling thread (parallel.h); the same bits on any number of threads.
#pragma once
#include <cstdint>
#include <span>

namespace trireme::ops {

// Rows × channels; either may be 0.
struct RowShape {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t size() const { return rows * channels; }
};

// Mean and variance of each channel over the rows, divided by their number. There must be a row.
void batch_statistics(RowShape shape, const float* x, std::span<double> mean, std::span<double> variance);

// y = relu(x · scale + shift + add), element by element; `add` may be null, relu is left out unless asked for. y may be
// x or add.
struct Normalization {
  const float* scale = nullptr;  // of each channel: weight / √(variance + ε)
  const float* shift = nullptr;  // bias − mean · scale
  const float* add = nullptr;
  bool relu = false;
};
void normalize(RowShape shape, const float* x, const Normalization& by, float* y);

struct NormGradients {
  const float* output = nullptr;  // what normalize() wrote; null where there was no ReLU
  const float* x = nullptr;
  const float* gradient = nullptr;  // of the output
};

// Per channel, with g the gradient where the output is positive (or all of it without ReLU): Σ g and Σ g · (x − mean).
void norm_sums(RowShape shape, const NormGradients& of, const float* mean, std::span<double> sums,
               std::span<double> products);

// dx = g · scale + (x − mean) · slope + offset: with slope and offset 0 where the statistics were constants. `add`, if
// not null, becomes g, the gradient of what was added.
struct NormSlopes {
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* slope = nullptr;
  const float* offset = nullptr;
};
void norm_backward(RowShape shape, const NormGradients& of, const NormSlopes& by, float* dx, float* add);

// The gradient in front of ReLU and of a bias: `masked` becomes the gradient where `output` is positive, and `sums`, of
// each channel, its sum over the rows. Without ReLU output and masked are null; without a bias sums is.
void relu_backward(RowShape shape, const float* gradient, const float* output, float* masked, float* sums);

// What normalize() is given for these statistics, and norm_backward() for these sums.
void normalization_of(std::span<const double> mean, std::span<const double> variance, double epsilon,
                      const float* weight, const float* bias, std::span<float> scale, std::span<float> shift);
void slopes_of(std::span<const double> variance, double epsilon, int64_t rows, std::span<const double> sums,
               std::span<const double> products, std::span<const float> scale, std::span<float> slope,
               std::span<float> offset);

}  // namespace trireme::ops
