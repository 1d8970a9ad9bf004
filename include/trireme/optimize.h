// A module's layers by Trireme's own operators instead of LibTorch's, on the CPU.
//
//   trireme::optimize(net, example);   // parameters, buffers, names and checkpoints stay what they are
//
// Layers of any module, yours too, are found by their parameters: Conv2d, Linear, batch and layer normalization, LSTM,
// GRU, MultiheadAttention and Embedding whose tensors are plain f32 on the CPU. Pooling, GELU, softmax, attention and
// cross-entropy have none and are ours in the whole process as soon as one module is. What is not goes LibTorch's way,
// call by call: docs/operators.md says which. Each copy of a module is optimized by itself.
#pragma once
#include <torch/torch.h>

#include "trireme/operators/optimize.h"

namespace trireme {

using operators::Operators;

// The settings' default chooses by measurement. Any thread may use the module afterwards.
inline void optimize(const torch::nn::Module& module, const operators::Settings& settings = {}) {
  operators::optimize(module, settings);
}

// And measures the operators of forward passes on inputs like `example` at once, rather than in the first step;
// neither buffers nor random numbers are used up.
template <class Net>
requires requires(Net& net, const torch::Tensor& example) { net.forward(example); }
void optimize(Net& net, const torch::Tensor& example, const operators::Settings& settings = {}) {
  operators::optimize(net, settings);
  const torch::NoGradGuard no_grad;
  const bool training = net.is_training();
  net.eval();
  net.forward(example);
  net.train(training);
}

}  // namespace trireme
