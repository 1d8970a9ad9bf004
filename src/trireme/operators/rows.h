// Passes over rows and numbers as operators of autograd.
#pragma once
#include <torch/torch.h>

namespace trireme::operators {

// Over the last dimension; weight and bias may be undefined.
bool takes_layer_norm(const torch::Tensor& x, at::IntArrayRef normalized, const torch::Tensor& weight,
                      const torch::Tensor& bias);
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                         double epsilon);

// Of scores [rows, classes] and classes [rows]; the mean of the rows whose target is not `ignored`.
bool takes_cross_entropy(const torch::Tensor& scores, const torch::Tensor& targets);
torch::Tensor cross_entropy(const torch::Tensor& scores, const torch::Tensor& targets, std::int64_t ignored,
                            double smoothing);

// Over the last dimension.
bool takes_softmax(const torch::Tensor& x, std::int64_t dimension);
torch::Tensor row_softmax(const torch::Tensor& x);

// By Φ, or by its approximation with tanh.
bool takes_gelu(const torch::Tensor& x);
torch::Tensor fused_gelu(const torch::Tensor& x, bool by_tanh);

}  // namespace trireme::operators
