#include "trireme/operators/attention.h"

#include <ATen/CPUGeneratorImpl.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"
#include "trireme/ops/attention/attention.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttentionNode : torch::CustomClassHolder {
  AttentionOptions options;
};

// Queries, keys and values, of one tensor or of three.
using Heads = std::array<Tensor, 3>;
Heads heads_of(const Tensor& first, const Tensor& k, const Tensor& v) {
  if (k.defined()) return {first, k, v};
  return {first.select(2, 0), first.select(2, 1), first.select(2, 2)};
}

ops::AttentionShape shape_of(const Heads& heads, const AttentionOptions& options) {
  const Tensor &q = heads[0], &k = heads[1];
  const double scale = options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q.size(3)));
  return {.batch = q.size(0),
          .heads = q.size(2),
          .queries = q.size(1),
          .keys = k.size(1),
          .dim = q.size(3),
          .causal = options.causal,
          .scale = static_cast<float>(scale),
          .dropout = static_cast<float>(options.dropout),
          .seed = options.seed};
}

ops::HeadsView<const float> view_of(const Tensor& x) { return {data(x), x.stride(0), x.stride(2), x.stride(1)}; }
ops::HeadsView<float> view_of(Tensor& x) { return {data(x), x.stride(0), x.stride(2), x.stride(1)}; }

// The numbers of a head lie together.
Tensor together(const Tensor& x) { return x.size(-1) == 1 || x.stride(-1) == 1 ? x : x.contiguous(); }

// Without numbers, in the same order where that keeps a head's together. Undefined like x.
Tensor like(const Tensor& x) {
  if (!x.defined()) return {};
  const Tensor made = torch::empty_like(x);
  return made.size(-1) == 1 || made.stride(-1) == 1 ? made : torch::empty(x.sizes());
}

// By what each weight is multiplied, [batch][head][query][key]: 0 or 1 / (1 − dropout). With scores that are all 0 and
// the identity for values, attention itself says so.
Tensor kept(ops::AttentionShape shape) {
  shape.dim = shape.keys;
  const Tensor zeros = torch::zeros({shape.dim}), identity = torch::eye(shape.keys);
  Tensor weights = torch::empty({shape.batch, shape.queries, shape.heads, shape.keys}),
         sums = torch::empty({shape.sums_size()});
  const ops::HeadsView<const float> none{data(zeros), 0, 0, 0};
  ops::attention_forward(shape, {none, none, {data(identity), 0, 0, shape.keys}, view_of(weights), data(sums)});
  const Tensor seen = shape.causal ? torch::arange(1, shape.queries + 1).to(torch::kFloat32)
                                   : torch::full({shape.queries}, static_cast<float>(shape.keys));
  return weights.transpose(1, 2) * seen.unsqueeze(1);
}

class Attention : public torch::autograd::Function<Attention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& first, const MaybeTensor& k, const MaybeTensor& v,
                        const c10::intrusive_ptr<AttentionNode>& node) {
    const Heads heads = heads_of(first, k.value_or(Tensor()), v.value_or(Tensor()));
    const auto shape = shape_of(heads, node->options);
    Tensor y = like(heads[0]), sums = torch::empty({shape.sums_size()});
    ops::attention_forward(shape, {view_of(heads[0]), view_of(heads[1]), view_of(heads[2]), view_of(y), data(sums)});
    context->save_for_backward({first, k.value_or(Tensor()), v.value_or(Tensor()), y, sums});
    context->saved_data["node"] = c10::IValue::make_capsule(node);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto node = c10::static_intrusive_pointer_cast<AttentionNode>(context->saved_data["node"].toCapsule());
    const Tensor &first = saved[0], &k = saved[1], &v = saved[2], &y = saved[3];
    if (torch::GradMode::is_enabled()) return again(saved, *node, gradients[0]);
    const Heads heads = heads_of(first, k, v);
    const Tensor g = together(gradients[0]);
    const Tensor dfirst = like(first), dk = like(k), dv = like(v);
    Heads into = heads_of(dfirst, dk, dv);
    ops::attention_backward(shape_of(heads, node->options),
                            {view_of(heads[0]), view_of(heads[1]), view_of(heads[2]), view_of(y), data(saved[4]),
                             view_of(g), view_of(into[0]), view_of(into[1]), view_of(into[2])});
    return {dfirst, dk, dv, {}};
  }

 private:
  // With the matrix of scores.
  static variable_list again(const variable_list& saved, const AttentionNode& node, const Tensor& gradient) {
    const auto shape = shape_of(heads_of(saved[0], saved[1], saved[2]), node.options);
    const Tensor factor = shape.dropout > 0 ? kept(shape) : Tensor();
    auto all = differentiable_gradients({saved[0], saved[1], saved[2]}, gradient, [&](const variable_list& in) {
      const Heads heads = heads_of(in[0], in[1], in[2]);
      Tensor scores = torch::matmul(heads[0].transpose(1, 2), heads[1].permute({0, 2, 3, 1})) * shape.scale;
      if (shape.causal) {
        const auto future = torch::ones({shape.queries, shape.keys}, torch::kBool).triu(1);
        scores = scores.masked_fill(future, -std::numeric_limits<float>::infinity());
      }
      Tensor weights = torch::softmax(scores, -1);
      if (factor.defined()) weights = weights * factor;
      return torch::matmul(weights, heads[2].transpose(1, 2)).transpose(1, 2);
    });
    all.emplace_back();
    return all;
  }
};

Tensor run_attention(const Tensor& first, const MaybeTensor& k, const MaybeTensor& v, const AttentionOptions& options) {
  auto node = c10::make_intrusive<AttentionNode>();
  node->options = options;
  return Attention::apply(first, k, v, node);
}

}  // namespace

bool takes_attention(const Tensor& qkv) {
  return any_layer() && plain_f32(qkv) && qkv.dim() == 5 && qkv.size(2) == 3 && qkv.numel() > 0;
}

Tensor attention(const Tensor& qkv, const AttentionOptions& options) {
  return run_attention(together(qkv), {}, {}, options).flatten(2);
}

bool takes_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (!any_layer() || !plain_f32(q) || !plain_f32(k) || !plain_f32(v)) return false;
  if (q.dim() != 4 || k.dim() != 4 || k.sizes() != v.sizes() || q.numel() == 0 || k.numel() == 0) return false;
  if (q.size(0) != k.size(0) || q.size(2) != k.size(2) || q.size(3) != k.size(3)) return false;
  return options.dropout >= 0 && options.dropout < 1 && options.scale >= 0 &&
         (!options.causal || q.size(1) == k.size(1));
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  return run_attention(together(q), together(k), together(v), options);
}

std::uint64_t random_seed() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

}  // namespace trireme::operators
