#include "trireme/operators/norm.h"

#include <utility>

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::span<double> numbers(Tensor& x) { return {x.data_ptr<double>(), static_cast<std::size_t>(x.numel())}; }
std::span<float> floats(Tensor& x) { return {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())}; }

void move_towards(Tensor running, std::span<const double> now, double momentum, double factor) {
  if (!running.defined()) return;
  torch::NoGradGuard no_grad;
  float* value = running.data_ptr<float>();
  for (std::size_t c = 0; c < now.size(); ++c) {
    value[c] = static_cast<float>((1 - momentum) * static_cast<double>(value[c]) + momentum * factor * now[c]);
  }
  running.unsafeGetTensorImpl()->bump_version();
}

class FusedNorm : public torch::autograd::Function<FusedNorm> {
 public:
  // `skip` may be undefined. The statistics are the batch's, or `mean` and `variance`, f64.
  static Tensor forward(AutogradContext* context, const Tensor& x, const MaybeTensor& maybe_weight,
                        const MaybeTensor& maybe_bias, const MaybeTensor& maybe_skip, Tensor mean, Tensor variance,
                        bool of_batch, double epsilon, bool relu) {
    const Tensor weight = maybe_weight.value_or(Tensor()), bias = maybe_bias.value_or(Tensor()),
                 skip = maybe_skip.value_or(Tensor());
    auto scale = torch::empty({x.size(1)}, torch::kFloat32), shift = torch::empty_like(scale);
    ops::normalization_of(numbers(mean), numbers(variance), epsilon, data(weight), data(bias), floats(scale),
                          floats(shift));
    Tensor y = empty_channels_last(x.sizes());
    ops::normalize(rows_of(x), data(x), {data(scale), data(shift), data(skip), relu}, data(y));
    context->save_for_backward({x, weight, bias, relu ? y : Tensor(), mean, variance, scale});
    context->saved_data["of_batch"] = of_batch;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["skips"] = skip.defined() && skip.requires_grad();
    context->saved_data["affine"] =
        (weight.defined() && weight.requires_grad()) || (bias.defined() && bias.requires_grad());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &y = saved[3];
    Tensor &mean = saved[4], &variance = saved[5], &scale = saved[6];
    const bool of_batch = context->saved_data["of_batch"].toBool(), skips = context->saved_data["skips"].toBool();
    const double epsilon = context->saved_data["epsilon"].toDouble();
    if (torch::GradMode::is_enabled()) {
      // LibTorch 1.13 takes a gradient that lies otherwise for channels last where x is.
      const Tensor g = channels_last(y.defined() ? gradients[0] * (y > 0) : gradients[0]);
      auto all = differentiable_gradients({x, weight, bias}, g, [&](const variable_list& in) {
        const auto as_x = [&](const Tensor& v) { return of_batch ? Tensor() : v.to(in[0].options()); };
        return std::get<0>(torch::native_batch_norm(in[0], maybe(in[1]), maybe(in[2]), maybe(as_x(mean)),
                                                    maybe(as_x(variance)), of_batch, 0, epsilon));
      });
      return {all[0], all[1], all[2], skips ? g : Tensor(), {}, {}, {}, {}, {}};
    }

    const auto shape = rows_of(x);
    const Tensor gradient = channels_last(gradients[0]);
    const ops::NormGradients of{data(y), data(x), data(gradient)};
    const Tensor means = mean.to(torch::kFloat32);
    auto slope = torch::zeros({shape.channels}, torch::kFloat32), offset = torch::zeros_like(slope);
    Tensor dweight, dbias;
    if (of_batch || context->saved_data["affine"].toBool()) {
      auto sums = torch::empty({shape.channels}, torch::kFloat64), products = torch::empty_like(sums);
      ops::norm_sums(shape, of, data(means), numbers(sums), numbers(products));
      if (of_batch) {
        ops::slopes_of(numbers(variance), epsilon, shape.rows, numbers(sums), numbers(products), floats(scale),
                       floats(slope), floats(offset));
      }
      if (weight.defined()) dweight = (products * torch::rsqrt(variance + epsilon)).to(torch::kFloat32);
      if (bias.defined()) dbias = sums.to(torch::kFloat32);
    }
    Tensor dx = empty_channels_last(x.sizes()), dskip;
    if (skips) dskip = y.defined() ? empty_channels_last(x.sizes()) : gradient;
    ops::norm_backward(shape, of, {data(scale), data(means), data(slope), data(offset)}, data(dx),
                       skips && y.defined() ? data(dskip) : nullptr);
    return {dx, dweight, dbias, dskip, {}, {}, {}, {}, {}};
  }
};

// Rows and sequences as images with sides of 1, the same memory.
Tensor as_image(Tensor x) {
  while (x.dim() < 4) x = x.unsqueeze(-1);
  return x;
}
bool rows_of_channels(const Tensor& x) { return x.dim() >= 2 && x.dim() <= 4 && is_channels_last(as_image(x)); }

bool plain_row(const Tensor& x) { return !x.defined() || (plain_f32(x) && x.is_contiguous()); }

}  // namespace

bool takes(const NormCall& call) {
  if (!plain_f32(call.x) || !rows_of_channels(call.x) || !plain_row(call.weight) || !plain_row(call.bias) ||
      !plain_row(call.running_mean) || !plain_row(call.running_variance)) {
    return false;
  }
  const auto fits = [&](const Tensor& x) { return !x.defined() || (x.dim() == 1 && x.size(0) == call.x.size(1)); };
  if (!fits(call.weight) || !fits(call.bias) || !fits(call.running_mean) || !fits(call.running_variance)) return false;
  const auto rows = rows_of(as_image(call.x)).rows;
  return call.training ? rows > 1 : rows > 0 && call.running_mean.defined() && call.running_variance.defined();
}

Tensor batch_norm(const NormCall& call, const Epilogue& epilogue) {
  Tensor mean, variance;
  const Tensor x = as_image(call.x);
  if (call.training) {
    const auto shape = rows_of(x);
    mean = torch::empty({shape.channels}, torch::kFloat64);
    variance = torch::empty_like(mean);
    ops::batch_statistics(shape, data(x), numbers(mean), numbers(variance));
    move_towards(call.running_mean, numbers(mean), call.momentum, 1);
    move_towards(call.running_variance, numbers(variance), call.momentum,
                 static_cast<double>(shape.rows) / static_cast<double>(shape.rows - 1));
  } else {
    mean = call.running_mean.detach().to(torch::kFloat64);
    variance = call.running_variance.detach().to(torch::kFloat64);
  }
  const Tensor skip = epilogue.add.defined() ? channels_last(as_image(epilogue.add)) : Tensor();
  const Tensor y = FusedNorm::apply(x, maybe(call.weight), maybe(call.bias), maybe(skip), mean, variance, call.training,
                                    call.epsilon, epilogue.relu);
  return call.x.dim() == 4 ? y : y.view(call.x.sizes());
}

}  // namespace trireme::operators
