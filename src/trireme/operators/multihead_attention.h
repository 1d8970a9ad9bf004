// torch::nn::MultiheadAttention by our attention and linear layers.
#pragma once
#include <torch/torch.h>

namespace trireme::operators {

struct MultiheadCall {
  torch::Tensor query, key, value;  // [length][batch][features]
  torch::Tensor mask;               // of scores, [query][key]; may be undefined
};

// Whether ours can do this one: plain f32, no mask or one that hides exactly what comes after a query, no further keys.
bool takes(const torch::nn::MultiheadAttentionImpl& module, const MultiheadCall& call);
torch::Tensor multihead_attention(const torch::nn::MultiheadAttentionImpl& module, const MultiheadCall& call);

}  // namespace trireme::operators
