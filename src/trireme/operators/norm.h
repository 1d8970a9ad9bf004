// Batch normalization as an operator of autograd, with what follows it in the same pass.
#pragma once
#include "trireme/operators/epilogue.h"
#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"

namespace trireme::operators {

struct NormCall {
  torch::Tensor x, weight, bias, running_mean, running_variance;  // all but x and weight may be undefined
  bool training = true;
  double momentum = 0.1;
  double epsilon = 1e-5;
};

// Whether ours can do this one: f32, rows of channels (images channels last, sequences [batch][channels][length] of
// which the channels lie together, or [batch][channels]), more than one element a channel.
bool takes(const NormCall& call);
torch::Tensor batch_norm(const NormCall& call, const Epilogue& epilogue);

}  // namespace trireme::operators
