// Attention of many heads as one operator of autograd: the matrix of scores is never whole.
#pragma once
#include <torch/torch.h>

#include <cstdint>

namespace trireme::operators {

// Whether layers are ours and qkv, [batch][length][query key value][heads][dim], is what ours takes.
bool takes_attention(const torch::Tensor& qkv);
// Causal, scaled by 1/√dim; `dropout` of the weights, drawn from the seed. [batch][length][heads · dim].
torch::Tensor attention(const torch::Tensor& qkv, double dropout, std::uint64_t seed);

}  // namespace trireme::operators
