// LibTorch's layers with the seam of layer.h: parameters, initialization and results are LibTorch's.
#pragma once
#include <torch/torch.h>

#include "trireme/nn/layer.h"

namespace trireme::nn {

class LinearImpl : public torch::nn::LinearImpl, public Layer {
 public:
  using torch::nn::LinearImpl::LinearImpl;
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  // As one operator: LibTorch's own forward is a product and an addition, in which nobody knows the layer again.
  torch::Tensor plain(const torch::Tensor& input) override {
    return bias.defined() ? torch::linear(input, weight, bias) : torch::linear(input, weight);
  }

  // Says that the outputs are `groups` (query, key, value) of `heads` equal heads each: what may be split by heads.
  void set_heads(std::int64_t groups, std::int64_t heads) { groups_ = groups, heads_ = heads; }
  std::int64_t groups() const { return groups_; }
  std::int64_t heads() const { return heads_; }  // 0: none said

 private:
  std::int64_t groups_ = 1, heads_ = 0;
};
TORCH_MODULE(Linear);

class Conv2dImpl : public torch::nn::Conv2dImpl, public Layer {
 public:
  using torch::nn::Conv2dImpl::Conv2dImpl;
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  torch::Tensor plain(const torch::Tensor& input) override { return torch::nn::Conv2dImpl::forward(input); }
};
TORCH_MODULE(Conv2d);

// Made from LibTorch's base: what its own batch normalization adds cannot be derived from outside its library.
class BatchNorm2dImpl : public torch::nn::NormImplBase<2, BatchNorm2dImpl, torch::nn::BatchNormOptions>, public Layer {
 public:
  using torch::nn::NormImplBase<2, BatchNorm2dImpl, torch::nn::BatchNormOptions>::NormImplBase;
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  torch::Tensor plain(const torch::Tensor& input) override;
  // Counts a batch where statistics are kept, and says how much of it they take in.
  double count_batch();

 protected:
  void _check_input_dim(const torch::Tensor& input) override;
};
TORCH_MODULE(BatchNorm2d);

class EmbeddingImpl : public torch::nn::EmbeddingImpl, public Layer {
 public:
  using torch::nn::EmbeddingImpl::EmbeddingImpl;
  torch::Tensor forward(const torch::Tensor& indices) { return compute(indices); }
  torch::Tensor plain(const torch::Tensor& indices) override { return torch::nn::EmbeddingImpl::forward(indices); }
  // How well each entry fits: input · weightᵀ + bias, for models that use the embedding for their scores as well.
  torch::Tensor scores(const torch::Tensor& input, const torch::Tensor& bias = {}) {
    auto by = split();
    return by ? by->scores(input, bias) : plain_scores(input, bias);
  }
  torch::Tensor plain_scores(const torch::Tensor& input, const torch::Tensor& bias) {
    return bias.defined() ? torch::linear(input, weight, bias) : torch::linear(input, weight);
  }
};
TORCH_MODULE(Embedding);

class MaxPool2dImpl : public torch::nn::MaxPool2dImpl, public Layer {
 public:
  using torch::nn::MaxPool2dImpl::MaxPool2dImpl;
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  torch::Tensor plain(const torch::Tensor& input) override { return torch::nn::MaxPool2dImpl::forward(input); }
};
TORCH_MODULE(MaxPool2d);

// All dimensions but the batch become one.
class FlattenImpl : public torch::nn::Module, public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  torch::Tensor plain(const torch::Tensor& input) override { return input.flatten(1); }
};
TORCH_MODULE(Flatten);

}  // namespace trireme::nn
