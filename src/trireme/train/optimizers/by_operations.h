// The optimizers' formulas as LibTorch's operations, for tensors that are no dense f32 on the CPU: on a GPU, f64,
// views. An optimizer that is not here is stepped in copies on the CPU.
#pragma once
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

struct TensorStep {
  const optim::Options& options;
  const std::string& name;
  torch::Tensor w, g;
  std::vector<torch::Tensor>& kept;  // as the rule's quantities
  double lr;
  std::int64_t step;  // counts from 1
  const OverParts& over_parts;
};
using Operations = void (*)(const TensorStep&);
// Null where there are none.
Operations operations_of(const optim::OptimizerKind& kind);

}  // namespace trireme::train
