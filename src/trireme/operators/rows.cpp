#include "trireme/operators/rows.h"

#include "trireme/operators/registry.h"
#include "trireme/operators/tensors.h"
#include "trireme/ops/elementwise/activation.h"
#include "trireme/ops/rows/rows.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const MaybeTensor& maybe_weight,
                        const MaybeTensor& maybe_bias, double epsilon) {
    const Tensor weight = maybe_weight.value_or(Tensor()), bias = maybe_bias.value_or(Tensor());
    const auto columns = x.size(-1), rows = x.numel() / columns;
    Tensor y = torch::empty_like(x), mean = torch::empty({rows}), inverse = torch::empty({rows});
    ops::layer_norm_forward(rows, columns, static_cast<float>(epsilon), data(x), data(weight), data(bias), data(y),
                            data(mean), data(inverse));
    context->save_for_backward({x, weight, bias, mean, inverse});
    context->saved_data["epsilon"] = epsilon;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    if (torch::GradMode::is_enabled()) {
      const double epsilon = context->saved_data["epsilon"].toDouble();
      auto all = differentiable_gradients({x, weight, bias}, gradients[0], [&](const variable_list& in) {
        return std::get<0>(at::native_layer_norm(in[0], {in[0].size(-1)}, maybe(in[1]), maybe(in[2]), epsilon));
      });
      return {all[0], all[1], all[2], {}};
    }
    const Tensor g = gradients[0].contiguous();
    const auto columns = x.size(-1);
    Tensor dx = torch::empty_like(x), dweight = weight.defined() ? torch::empty_like(weight) : Tensor(),
           dbias = bias.defined() ? torch::empty_like(bias) : Tensor();
    ops::layer_norm_backward(x.numel() / columns, columns, data(x), data(weight), data(saved[3]), data(saved[4]),
                             data(g), data(dx), data(dweight), data(dbias));
    return {dx, dweight, dbias, {}};
  }
};

class CrossEntropyLoss : public torch::autograd::Function<CrossEntropyLoss> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& scores, const Tensor& targets, std::int64_t ignored,
                        double smoothing) {
    const ops::CrossEntropy shape{scores.size(0), scores.size(1), static_cast<float>(smoothing), ignored};
    Tensor sums = torch::empty({shape.rows});
    const auto result = ops::cross_entropy_forward(shape, data(scores), targets.data_ptr<std::int64_t>(), data(sums));
    context->save_for_backward({scores, targets, sums});
    context->saved_data["ignored"] = ignored;
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["count"] = result.count;
    return torch::scalar_tensor(result.sum / static_cast<double>(result.count), torch::kFloat32);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto ignored = context->saved_data["ignored"].toInt(), count = context->saved_data["count"].toInt();
    const double smoothing = context->saved_data["smoothing"].toDouble();
    if (torch::GradMode::is_enabled()) {
      auto all = differentiable_gradients({saved[0]}, gradients[0], [&](const variable_list& in) {
        const Tensor logs = in[0].log_softmax(1), counts = (saved[1] != ignored).to(torch::kFloat32);
        const Tensor picked = logs.gather(1, saved[1].clamp_min(0).unsqueeze(1)).squeeze(1);
        const Tensor each = (smoothing - 1) * picked - smoothing * logs.mean(1);
        return (each * counts).sum() / static_cast<double>(count);
      });
      return {all[0], {}, {}, {}};
    }
    const ops::CrossEntropy shape{saved[0].size(0), saved[0].size(1), static_cast<float>(smoothing), ignored};
    Tensor dscores = torch::empty_like(saved[0]);
    const double scale = gradients[0].item<double>() / static_cast<double>(count);
    ops::cross_entropy_backward(shape, data(saved[0]), saved[1].data_ptr<std::int64_t>(), data(saved[2]),
                                static_cast<float>(scale), data(dscores));
    return {dscores, {}, {}, {}};
  }
};

class Gelu : public torch::autograd::Function<Gelu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, bool by_tanh) {
    Tensor y = torch::empty_like(x);
    ops::activation_forward(kind(by_tanh), x.numel(), data(x), data(y));
    context->save_for_backward({x});
    context->saved_data["tanh"] = by_tanh;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor x = context->get_saved_variables()[0];
    const bool by_tanh = context->saved_data["tanh"].toBool();
    if (torch::GradMode::is_enabled()) {
      auto all = differentiable_gradients({x}, gradients[0], [&](const variable_list& in) {
        return as_libtorch<at::_ops::gelu>(in[0].key_set(), in[0], c10::string_view(by_tanh ? "tanh" : "none"));
      });
      return {all[0], {}};
    }
    const Tensor g = gradients[0].contiguous();
    Tensor dx = torch::empty_like(x);
    ops::activation_backward(kind(by_tanh), x.numel(), data(x), data(g), data(dx));
    return {dx, {}};
  }

 private:
  static ops::Activation kind(bool by_tanh) { return by_tanh ? ops::Activation::gelu_tanh : ops::Activation::gelu; }
};

class Softmax : public torch::autograd::Function<Softmax> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    Tensor y = torch::empty_like(x);
    ops::softmax_forward(x.numel() / x.size(-1), x.size(-1), data(x), data(y));
    context->save_for_backward({y});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor y = context->get_saved_variables()[0];
    if (torch::GradMode::is_enabled()) return {y * (gradients[0] - (y * gradients[0]).sum(-1, true))};
    const Tensor g = gradients[0].contiguous();
    Tensor dx = torch::empty_like(y);
    ops::softmax_backward(y.numel() / y.size(-1), y.size(-1), data(y), data(g), data(dx));
    return {dx};
  }
};

bool of_columns(const Tensor& x, std::int64_t columns) {
  return !x.defined() || (plain_f32(x) && x.dim() == 1 && x.size(0) == columns && x.is_contiguous());
}

}  // namespace

bool takes_layer_norm(const Tensor& x, at::IntArrayRef normalized, const Tensor& weight, const Tensor& bias) {
  return plain_f32(x) && x.dim() >= 1 && x.numel() > 0 && normalized.size() == 1 && normalized[0] == x.size(-1) &&
         of_columns(weight, x.size(-1)) && of_columns(bias, x.size(-1));
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  return LayerNorm::apply(x.contiguous(), maybe(weight), maybe(bias), epsilon);
}

bool takes_cross_entropy(const Tensor& scores, const Tensor& targets) {
  return any_layer() && plain_f32(scores) && scores.dim() == 2 && scores.is_contiguous() && scores.numel() > 0 &&
         targets.defined() && targets.device().is_cpu() && targets.scalar_type() == torch::kInt64 &&
         targets.dim() == 1 && targets.size(0) == scores.size(0);
}

Tensor cross_entropy(const Tensor& scores, const Tensor& targets, std::int64_t ignored, double smoothing) {
  return CrossEntropyLoss::apply(scores, targets.contiguous(), ignored, smoothing);
}

bool takes_softmax(const Tensor& x, std::int64_t dimension) {
  return any_layer() && plain_f32(x) && x.dim() > 0 && (dimension == -1 || dimension == x.dim() - 1) &&
         x.is_contiguous() && x.numel() > 0;
}

Tensor row_softmax(const Tensor& x) { return Softmax::apply(x); }

bool takes_gelu(const Tensor& x) { return any_layer() && plain_f32(x) && x.is_contiguous() && x.numel() > 0; }

Tensor fused_gelu(const Tensor& x, bool by_tanh) { return Gelu::apply(x, by_tanh); }

}  // namespace trireme::operators
