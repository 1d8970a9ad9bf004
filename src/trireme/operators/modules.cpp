#include "trireme/operators/modules.h"

#include <torch/torch.h>

#include <tuple>

#include "trireme/operators/multihead_attention.h"
#include "trireme/operators/registry.h"

namespace trireme::operators {

void take_modules() {}

}  // namespace trireme::operators

namespace torch::nn {

Tensor LinearImpl::forward(const Tensor& input) {
  if (trireme::operators::layer_of(weight)) return torch::linear(input, weight, bias);
  return functional::linear(input, weight, bias);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask, bool average_attn_weights) {
  const trireme::operators::MultiheadCall call{query, key, value, attn_mask};
  if (!need_weights && !key_padding_mask.defined() && trireme::operators::takes(*this, call)) {
    return {trireme::operators::multihead_attention(*this, call), Tensor()};
  }
  return functional::multi_head_attention_forward(
      query, key, value,
      functional::MultiheadAttentionForwardFuncOptions(options.embed_dim(), options.num_heads(), in_proj_weight,
                                                       in_proj_bias, bias_k, bias_v, options.add_zero_attn(),
                                                       options.dropout(), out_proj->weight, out_proj->bias)
          .training(is_training())
          .key_padding_mask(key_padding_mask)
          .need_weights(need_weights)
          .attn_mask(attn_mask)
          .average_attn_weights(average_attn_weights)
          .use_separate_proj_weight(!_qkv_same_embed_dim)
          .q_proj_weight(q_proj_weight)
          .k_proj_weight(k_proj_weight)
          .v_proj_weight(v_proj_weight));
}

}  // namespace torch::nn
