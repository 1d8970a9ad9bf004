// Cross entropy and accuracy of scores that are split over the classes: the scores are never gathered.
//   forward   all-reduce of the N maxima, then of N sums of exponentials and N scores of the targets; with smoothing
//             also of N sums of scores
//   backward  nothing: the gradient of a score is its probability, less what the target says
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "trireme/collective/run/communicator.h"

namespace trireme::parallel {

// The mean over all targets. `scores` [..., own classes], `target` the same without its last dimension; targets below
// 0 are left out. A share `smoothing` of each target is spread over all classes. `sizes`: how many classes each rank
// has, in order. Whole scores are computed as LibTorch does.
torch::Tensor cross_entropy(const torch::Tensor& scores, const torch::Tensor& target,
                            const std::vector<std::int64_t>& sizes, Communicator& comm, double smoothing = 0);

// How many targets have the greatest score. One all-gather of 2N numbers.
std::int64_t correct(const torch::Tensor& scores, const torch::Tensor& target, const std::vector<std::int64_t>& sizes,
                     Communicator& comm);

}  // namespace trireme::parallel
