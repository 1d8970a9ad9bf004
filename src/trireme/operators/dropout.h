// Dropout as one operator of autograd: what is dropped is drawn from a seed and the place, in one pass on all threads,
// and drawn again backward; no mask is kept.
#pragma once
#include <torch/torch.h>

#include <cstdint>

namespace trireme::operators {

// Whether layers are ours and x, dense in any order of its dimensions, is what ours takes at this share.
bool takes_dropout(const torch::Tensor& x, double share);
// A place is one of x's memory.
torch::Tensor seeded_dropout(const torch::Tensor& x, double share, std::uint64_t seed);
// The same, added to `residual`, of x's sizes.
torch::Tensor seeded_dropout_added(const torch::Tensor& x, const torch::Tensor& residual, double share,
                                   std::uint64_t seed);

}  // namespace trireme::operators
