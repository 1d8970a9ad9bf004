// Convolution of images, forward and both gradients, in f32. One file per algorithm; the list is conv.cpp's.
//
// Activations are channels last, [batch][height][width][channels]; weights and their gradient as LibTorch keeps them,
// [out_channels][in_channels / groups][kernel_height][kernel_width].
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/ops/operator.h"

namespace trireme::ops {

struct ConvShape {
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_channels = 0;
  std::array<int64_t, 2> kernel{1, 1};  // height, width; so are the next three
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> padding{0, 0};  // zeros on either side
  std::array<int64_t, 2> dilation{1, 1};
  int64_t groups = 1;

  int64_t out_height() const { return out(height, 0); }
  int64_t out_width() const { return out(width, 1); }
  int64_t input_size() const { return batch * height * width * in_channels; }
  int64_t output_size() const { return batch * out_height() * out_width() * out_channels; }
  int64_t weight_size() const { return out_channels * (in_channels / groups) * kernel[0] * kernel[1]; }
  // Of the definition, two a product: what speeds are counted in, whatever the algorithm.
  double flops() const {
    return 2.0 * static_cast<double>(output_size()) * static_cast<double>(in_channels / groups * kernel[0] * kernel[1]);
  }
  bool operator==(const ConvShape&) const = default;

 private:
  int64_t out(int64_t size, std::size_t side) const {
    return (size + 2 * padding[side] - dilation[side] * (kernel[side] - 1) - 1) / stride[side] + 1;
  }
};

// Throws ConfigError naming what cannot be: a size below one (the batch may be empty), channels that the groups do not
// divide, a kernel larger than the padded image.
void check(const ConvShape& shape);

// What a pass reads and writes: forward input, weight, bias → output; data weight, output → input; weights
// input, output → weight. In backward passes `output` is the gradient of the output, and what is written a gradient.
struct ConvTensors {
  float* input = nullptr;
  float* weight = nullptr;
  float* output = nullptr;
  const float* bias = nullptr;  // forward: of out_channels, or null
};

class ConvAlgorithm {
 public:
  virtual ~ConvAlgorithm() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view what() const = 0;  // one line
  virtual Accuracy accuracy() const { return Accuracy::f32; }
  virtual bool takes(const ConvShape& shape, Pass pass) const = 0;
  // Of a shape and pass that it takes; workspace is what run() needs, aligned to 64 bytes.
  virtual OpCost cost(const ConvShape& shape, Pass pass) const = 0;
  // Overwrites what the pass writes. Runs on the team of the calling thread (ops/parallel.h). The same on any number
  // of threads.
  virtual void run(const ConvShape& shape, Pass pass, const ConvTensors& tensors,
                   std::span<std::byte> workspace) const = 0;
};

// All of them, the reference first: it takes every shape and pass.
std::span<const ConvAlgorithm* const> conv_algorithms();
// Null where there is none of this name.
const ConvAlgorithm* find_conv_algorithm(std::string_view name);

}  // namespace trireme::ops
