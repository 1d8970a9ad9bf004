#include "trireme/operators/dropout.h"

#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"
#include "trireme/ops/elementwise/activation.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Values of x in memory as that of these sizes and strides has them; differentiable.
Tensor laid_out(const Tensor& x, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (x.strides() == strides) return x;
  return torch::empty_strided(sizes, strides, x.options().requires_grad(false)).copy_(x);
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const MaybeTensor& maybe_residual, double share,
                        std::int64_t seed) {
    const Tensor residual = maybe_residual.value_or(Tensor());
    Tensor y = torch::empty_strided(x.sizes(), x.strides());
    ops::dropout(x.numel(), static_cast<float>(share), static_cast<std::uint64_t>(seed), data(x), data(residual),
                 data(y));
    context->saved_data["share"] = share;
    context->saved_data["seed"] = seed;
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["strides"] = x.strides().vec();
    context->saved_data["adds"] = residual.defined() && residual.requires_grad();
    return y;
  }

  // The same function of the gradient.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor g = laid_out(gradients[0], context->saved_data["sizes"].toIntVector(),
                              context->saved_data["strides"].toIntVector());
    return {
        Dropout::apply(g, MaybeTensor(), context->saved_data["share"].toDouble(), context->saved_data["seed"].toInt()),
        context->saved_data["adds"].toBool() ? gradients[0] : Tensor(),
        {},
        {}};
  }
};

}  // namespace

bool takes_dropout(const Tensor& x, double share) {
  return any_layer() && plain_f32(x) && x.is_non_overlapping_and_dense() && x.numel() > 0 && share >= 0 && share < 1;
}

Tensor seeded_dropout(const Tensor& x, double share, std::uint64_t seed) {
  return Dropout::apply(x, MaybeTensor(), share, static_cast<std::int64_t>(seed));
}

Tensor seeded_dropout_added(const Tensor& x, const Tensor& residual, double share, std::uint64_t seed) {
  if (!plain_f32(residual) || residual.sizes() != x.sizes()) return residual + seeded_dropout(x, share, seed);
  return Dropout::apply(x, maybe(laid_out(residual, x.sizes(), x.strides())), share, static_cast<std::int64_t>(seed));
}

}  // namespace trireme::operators
