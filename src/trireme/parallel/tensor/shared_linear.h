// A linear layer of which each rank has some outputs, with the one exchange of its backward pass hidden: the sum of the
// input's gradients travels while the gradient of the weight is computed.
#pragma once
#include <torch/torch.h>

#include "trireme/collective/run/communicator.h"

namespace trireme::parallel {

// linear(copy_in(input), weight, bias). `bias` may be undefined. Under autocast nothing is hidden.
torch::Tensor shared_linear(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias,
                            Communicator& comm);

}  // namespace trireme::parallel
