// Convolution of images as an operator of autograd: each pass by the implementation that is fastest for its shape,
// LibTorch's among them, with bias and ReLU in one pass behind it.
#pragma once
#include "trireme/operators/epilogue.h"
#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"
#include "trireme/ops/conv/conv.h"

namespace trireme::operators {

struct ConvCall {
  torch::Tensor input, weight, bias;  // bias may be undefined
  std::array<std::int64_t, 2> stride, padding, dilation;
  std::int64_t groups = 1;
  bool bf16 = false;  // factors may be rounded to it
};

bool takes(const ConvCall& call);
torch::Tensor convolution(const ConvCall& call, const std::shared_ptr<Layer>& layer, const Epilogue& epilogue);

}  // namespace trireme::operators
