// One pass of a convolution on tensors, by an implementation of ours or by LibTorch.
#pragma once
#include <string_view>

#include "trireme/operators/tensors.h"
#include "trireme/ops/conv/conv.h"

namespace trireme::operators {

// What the pass reads, channels last but the weight, which lies as ops/conv/conv.h wants it.
struct ConvPass {
  ops::ConvShape shape;
  ops::Pass pass = ops::Pass::forward;
  torch::Tensor input, weight, output;
  torch::Tensor bias = {};  // forward: added; may be undefined
};

// Null: LibTorch's. Returns what the pass writes.
torch::Tensor run(const ConvPass& pass, const ops::ConvAlgorithm* algorithm);
std::string_view name_of(const ops::ConvAlgorithm* algorithm);

}  // namespace trireme::operators
