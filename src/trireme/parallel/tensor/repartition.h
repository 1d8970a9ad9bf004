// From data parallel to model parallel layers over the same ranks (Krizhevsky, "One weird trick for parallelizing
// convolutional neural networks", 2014, scheme a): each rank has run the convolutions on its own samples; the
// activations of all samples are gathered, and the layers behind, split over the ranks, compute all of them. Gradients
// return to the rank that has the sample. Ranks may have different numbers of samples.
//
// The loss must be one of all samples. Then what the layers before the gathering have as gradients are addends: the
// gradient is their sum over the ranks, not their mean.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "trireme/collective/run/communicator.h"

namespace trireme::parallel {

// How many samples each rank has: an exchange of 8 bytes.
std::vector<std::int64_t> batch_sizes(std::int64_t own, Communicator& comm);

// Whether the gradients of the gathered samples are equal on all ranks, as where a layer split by `column` or one that
// is not split takes them, or addends that must be summed.
enum class Returned { equal, addends };

// The samples of all ranks, in the order of ranks: one all-gather; backward nothing, or one reduce-scatter.
torch::Tensor gather_batch(const torch::Tensor& own, const std::vector<std::int64_t>& sizes, Communicator& comm,
                           Returned returned = Returned::equal);

}  // namespace trireme::parallel
