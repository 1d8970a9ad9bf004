// Collectives on tensors, without gradients. Tensors on a device go over the host. Every rank of the group calls.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/parallel/tensor/cut.h"

namespace trireme::parallel {

// A contiguous tensor of the host as collectives see it. Throws ConfigError for an element type they do not know.
View view_of(const torch::Tensor& tensor);

void all_reduce_in_place(torch::Tensor tensor, Communicator& comm, Op op = Op::sum);
torch::Tensor all_reduced(const torch::Tensor& mine, Communicator& comm, Op op = Op::sum);
// The parts of all ranks along a dimension. `sizes`: of each rank's part; where they differ the wire carries the
// largest.
torch::Tensor all_gathered(const torch::Tensor& mine, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                           Communicator& comm);
// This rank's part of the sum of all ranks' tensors.
torch::Tensor reduce_scattered(const torch::Tensor& whole, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                               Communicator& comm);
// Small numbers of every rank, in the order of ranks.
std::vector<std::int64_t> all_gathered(const std::vector<std::int64_t>& mine, Communicator& comm);
// The whole tensor of which every rank holds its part.
torch::Tensor assembled(const torch::Tensor& mine, const Cut& cut, Communicator& comm);
torch::Tensor broadcast(const torch::Tensor& mine, Communicator& comm, int root = 0);

std::vector<Range> ranges_of(const std::vector<std::int64_t>& sizes);

// Every rank r holds from[r] of a dimension and gets to[r]: the sum of what ranks hold of it, zeros where none does.
// Point to point, between those that share something.
torch::Tensor moved(const torch::Tensor& mine, std::int64_t dim, const std::vector<Range>& from,
                    const std::vector<Range>& to, Communicator& comm);

}  // namespace trireme::parallel
