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

struct ConvImplementation {
  const ops::ConvAlgorithm* algorithm = nullptr;  // null: LibTorch's
  bool bf16 = false;                              // LibTorch's on tensors that are cast to bf16, as autocast does it

  std::string_view name() const { return algorithm ? algorithm->name() : bf16 ? "libtorch-bf16" : "libtorch"; }
};
// Returns what the pass writes, in f32.
torch::Tensor run(const ConvPass& pass, const ConvImplementation& implementation);

}  // namespace trireme::operators
