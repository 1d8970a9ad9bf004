// A convolution whose weights are not shared: every place of the output has a kernel of its own (as in the layers that
// Le et al., "Building high-level features using large scale unsupervised learning", 2012, split over machines).
#pragma once
#include <torch/torch.h>

#include <array>

#include "trireme/nn/layer.h"

namespace trireme::nn {

struct LocallyConnected2dOptions {
  std::int64_t in = 1, out = 1;        // channels
  std::array<std::int64_t, 2> size{};  // of the input: height, width
  std::array<std::int64_t, 2> kernel{1, 1};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};  // zeros on each side
  bool bias = true;
};

// [n, in, height, width] → [n, out, out height, out width].
// weight [out height, out width, out, in · kernel height · kernel width], bias [out, out height, out width].
class LocallyConnected2dImpl : public torch::nn::Module, public Layer {
 public:
  // Throws ConfigError where the kernel is larger than the padded input. Uniform within ±1/√(inputs of one output).
  explicit LocallyConnected2dImpl(const LocallyConnected2dOptions& layer_options);
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  torch::Tensor plain(const torch::Tensor& input) override { return connect(input, options.padding); }
  // The same with another padding.
  torch::Tensor connect(const torch::Tensor& input, const std::array<std::int64_t, 2>& padding);

  const LocallyConnected2dOptions options;
  torch::Tensor weight, bias;
};
TORCH_MODULE(LocallyConnected2d);

}  // namespace trireme::nn
