// The exchanges of tensor parallelism as differentiable functions: each is a linear map over the group, and its
// backward is the adjoint. An activation is either whole, equal on all ranks with an equal gradient on all, or in
// parts, each rank holding its own and the gradient of its own. The names say what happens to it.
//
//               forward                          backward
//   copy_in     whole → whole, no exchange       all-reduce: ranks used the whole in different ways
//   sum_out     addends → whole, all-reduce      no exchange
//   gather      parts → whole, all-gather        no exchange: own part
//   gather_in   parts → whole, all-gather        reduce-scatter: gather, then copy_in
//   take        whole → parts, no exchange       all-gather
//   sum_both    addends → whole, all-reduce      all-reduce: sum_out, then copy_in
//   halo        parts → overlapping parts        the edges return and are added; point to point both ways
//
// The communicator must outlive the backward pass. Ranks must build the same graph. `sizes`: of each rank's part.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/parallel/tensor/cut.h"

namespace trireme::parallel {

torch::Tensor copy_in(const torch::Tensor& whole, Communicator& comm);
torch::Tensor sum_out(const torch::Tensor& addend, Communicator& comm);
torch::Tensor sum_both(const torch::Tensor& addend, Communicator& comm);
torch::Tensor gather(const torch::Tensor& part, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                     Communicator& comm);
torch::Tensor gather_in(const torch::Tensor& part, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                        Communicator& comm);
torch::Tensor take(const torch::Tensor& whole, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                   Communicator& comm);
// Rank r has have[r] of a dimension and gets need[r]. The ranges of `have` do not overlap, those of `need` may.
torch::Tensor halo(const torch::Tensor& part, std::int64_t dim, const std::vector<Range>& have,
                   const std::vector<Range>& need, Communicator& comm);

}  // namespace trireme::parallel
