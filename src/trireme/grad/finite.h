#pragma once
#include <torch/torch.h>

namespace trireme::grad {

// Whether no element is NaN or infinite.
bool all_finite(const torch::Tensor& tensor);

// The sum of squares, in double, over blocks of a fixed size and then pairwise: the same for every number of threads.
double sum_of_squares(const torch::Tensor& tensor);

}  // namespace trireme::grad
