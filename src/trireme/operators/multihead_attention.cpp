#include "trireme/operators/multihead_attention.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "trireme/operators/attention.h"
#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"

namespace trireme::operators {

namespace {

using torch::Tensor;
using torch::nn::MultiheadAttentionImpl;

// 0 where a query may look, −∞ where it may not: at no key after it.
bool is_causal(const Tensor& mask, std::int64_t length, std::int64_t keys) {
  if (!plain_f32(mask) || mask.requires_grad() || mask.sizes() != at::IntArrayRef({length, keys})) return false;
  if (keys != length) return false;
  const Tensor rows = mask.contiguous();
  const float* row = data(rows);
  for (std::int64_t i = 0; i < length; ++i, row += length) {
    const auto is = [](float wanted) { return [wanted](float x) { return x == wanted; }; };
    if (!std::all_of(row, row + i + 1, is(0))) return false;
    if (!std::all_of(row + i + 1, row + length, is(-std::numeric_limits<float>::infinity()))) return false;
  }
  return true;
}

const Tensor& input_weight(const MultiheadAttentionImpl& module) {
  return module._qkv_same_embed_dim ? module.in_proj_weight : module.q_proj_weight;
}

bool autocasting() { return !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU); }

// [length][batch][width] as [batch][length][heads][dim].
Tensor split_heads(const MultiheadAttentionImpl& module, const Tensor& x) {
  return x.view({x.size(0), x.size(1), module.options.num_heads(), module.head_dim}).transpose(0, 1);
}

// Part 0, 1 or 2 of what is made from queries, keys and values.
Tensor projected(const MultiheadAttentionImpl& module, const Tensor& x, std::int64_t part) {
  const auto width = module.options.embed_dim();
  const auto own = [&](const Tensor& all) { return all.defined() ? all.narrow(0, part * width, width) : all; };
  const Tensor apart[] = {module.q_proj_weight, module.k_proj_weight, module.v_proj_weight};
  const Tensor weight = module._qkv_same_embed_dim ? own(module.in_proj_weight) : apart[part];
  return split_heads(module, torch::linear(x, weight, own(module.in_proj_bias)));
}

}  // namespace

bool takes(const MultiheadAttentionImpl& module, const MultiheadCall& call) {
  if (!layer_of(input_weight(module)) || autocasting()) return false;
  if (module.bias_k.defined() || module.bias_v.defined() || module.options.add_zero_attn()) return false;
  if (module.options.dropout() < 0 || module.options.dropout() >= 1) return false;
  const auto fits = [](const Tensor& x, std::int64_t features) {
    return plain_f32(x) && x.dim() == 3 && x.size(2) == features && x.numel() > 0;
  };
  const bool same = module._qkv_same_embed_dim;
  const auto width = module.options.embed_dim();
  if (!fits(call.query, width) || !fits(call.key, same ? width : module.options.kdim()) ||
      !fits(call.value, same ? width : module.options.vdim())) {
    return false;
  }
  const auto plain = [](const Tensor& x) { return plain_f32(x); };
  if (call.mask.defined() && !is_causal(call.mask, call.query.size(0), call.key.size(0))) return false;
  return call.key.size(0) == call.value.size(0) && call.key.size(1) == call.query.size(1) &&
         call.value.size(1) == call.query.size(1) && std::ranges::all_of(module.parameters(), plain);
}

Tensor multihead_attention(const MultiheadAttentionImpl& module, const MultiheadCall& call) {
  const bool causal = call.mask.defined();
  AttentionOptions options{.causal = causal};
  if (module.is_training() && module.options.dropout() > 0) {
    options.dropout = module.options.dropout();
    options.seed = random_seed();
  }
  const auto &query = call.query, &key = call.key, &value = call.value;
  Tensor attended;
  if (module._qkv_same_embed_dim && query.is_same(key) && key.is_same(value)) {
    const Tensor all = torch::linear(query, module.in_proj_weight, module.in_proj_bias);
    const auto qkv = all.view({query.size(0), query.size(1), 3, module.options.num_heads(), module.head_dim});
    attended = attention(qkv.transpose(0, 1), options);
  } else {
    attended = attention(projected(module, query, 0), projected(module, key, 1), projected(module, value, 2), options)
                   .flatten(2);
  }
  layer_of(input_weight(module))
      ->note({.operation = "attention",
              .shape = fmt::format("{}x{} {}x{} {}", query.size(1), query.size(0), module.options.num_heads(),
                                   module.head_dim, causal ? "causal" : fmt::format("of {}", key.size(0))),
              .pass = "all",
              .picked = "tiled"});
  return torch::linear(attended.transpose(0, 1), module.out_proj->weight, module.out_proj->bias);
}

}  // namespace trireme::operators
