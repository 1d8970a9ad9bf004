// Attention of many heads as one operator of autograd: the matrix of scores is never whole.
#pragma once
#include <torch/torch.h>

#include <cstdint>

namespace trireme::operators {

struct AttentionOptions {
  bool causal = true;
  double scale = 0;    // of the scores, above 0; 0: 1/√dim
  double dropout = 0;  // of the weights
  std::uint64_t seed = 0;
};

// Whether layers are ours and qkv, [batch][length][query key value][heads][dim], is what ours takes.
bool takes_attention(const torch::Tensor& qkv);
// [batch][length][heads · dim]
torch::Tensor attention(const torch::Tensor& qkv, const AttentionOptions& options);

// The same with tensors of their own, [batch][length][heads][dim], as the result is; keys and values may be of another
// length than queries where it is not causal.
bool takes_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     const AttentionOptions& options);
torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                        const AttentionOptions& options);

// A seed from LibTorch's generator of the CPU.
std::uint64_t random_seed();

}  // namespace trireme::operators
