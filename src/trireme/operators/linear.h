// A linear layer as an operator of autograd: each product by ours or LibTorch's, with bias and ReLU behind it.
#pragma once
#include "trireme/operators/epilogue.h"
#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"

namespace trireme::operators {

// `bias` may be undefined.
bool takes_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);
// With `bf16` factors may be rounded to it.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const std::shared_ptr<Layer>& layer, const Epilogue& epilogue, bool bf16 = false);

}  // namespace trireme::operators
