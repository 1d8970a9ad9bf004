#include "trireme/operators/attention.h"

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"
#include "trireme/ops/attention/attention.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ops::AttentionShape attention_shape(const Tensor& qkv, double dropout, std::uint64_t seed) {
  const auto dim = qkv.size(4);
  return {.batch = qkv.size(0),
          .heads = qkv.size(3),
          .queries = qkv.size(1),
          .keys = qkv.size(1),
          .dim = dim,
          .causal = true,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim))),
          .dropout = static_cast<float>(dropout),
          .seed = seed};
}

// Of qkv the part 0, 1 or 2.
template <class T>
ops::HeadsView<T> view_of(T* start, const ops::AttentionShape& shape, std::int64_t parts, std::int64_t part) {
  const std::int64_t width = shape.heads * shape.dim;
  return {start + part * width, shape.queries * parts * width, shape.dim, parts * width};
}

class Attention : public torch::autograd::Function<Attention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& qkv, double dropout, std::int64_t seed) {
    const auto shape = attention_shape(qkv, dropout, static_cast<std::uint64_t>(seed));
    Tensor y = torch::empty({shape.batch, shape.queries, shape.heads * shape.dim}),
           sums = torch::empty({shape.sums_size()});
    const float* from = data(qkv);
    ops::attention_forward(shape, {view_of(from, shape, 3, 0), view_of(from, shape, 3, 1), view_of(from, shape, 3, 2),
                                   view_of(data(y), shape, 1, 0), data(sums)});
    context->save_for_backward({qkv, y, sums});
    context->saved_data["dropout"] = dropout;
    context->saved_data["seed"] = seed;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw ConfigError("attention: gradients of gradients are not computed; train with --ops libtorch");
    }
    const auto saved = context->get_saved_variables();
    const Tensor &qkv = saved[0], &y = saved[1];
    const auto shape = attention_shape(qkv, context->saved_data["dropout"].toDouble(),
                                       static_cast<std::uint64_t>(context->saved_data["seed"].toInt()));
    const Tensor g = gradients[0].contiguous();
    Tensor dqkv = torch::empty_like(qkv);
    const float* from = data(qkv);
    float* to = data(dqkv);
    ops::attention_backward(shape, {view_of(from, shape, 3, 0), view_of(from, shape, 3, 1), view_of(from, shape, 3, 2),
                                    view_of(data(y), shape, 1, 0), data(saved[2]), view_of(data(g), shape, 1, 0),
                                    view_of(to, shape, 3, 0), view_of(to, shape, 3, 1), view_of(to, shape, 3, 2)});
    return {dqkv, {}, {}};
  }
};

}  // namespace

bool takes_attention(const Tensor& qkv) {
  return any_layer() && plain_f32(qkv) && qkv.dim() == 5 && qkv.is_contiguous() && qkv.size(2) == 3 && qkv.numel() > 0;
}

Tensor attention(const Tensor& qkv, double dropout, std::uint64_t seed) {
  return Attention::apply(qkv, dropout, static_cast<std::int64_t>(seed));
}

}  // namespace trireme::operators
