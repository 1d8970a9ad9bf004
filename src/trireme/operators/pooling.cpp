#include "trireme/operators/pooling.h"

#include <utility>

#include "trireme/operators/registry.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ops::PoolShape pool_shape(at::IntArrayRef x, const PoolCall& call) {
  return {x[0], x[1], ops::PoolSide::windows(x[2], call.kernel[0], call.stride[0], call.padding[0]),
          ops::PoolSide::windows(x[3], call.kernel[1], call.stride[1], call.padding[1])};
}

ops::PoolShape adaptive_shape(at::IntArrayRef x, at::IntArrayRef outputs) {
  return {x[0], x[1], ops::PoolSide::adaptive(x[2], outputs[0]), ops::PoolSide::adaptive(x[3], outputs[1])};
}

Tensor output_of(const ops::PoolShape& shape) {
  return empty_channels_last({shape.batch, shape.channels, shape.rows.outputs(), shape.columns.outputs()});
}

void save(AutogradContext* context, const Tensor& x, const PoolCall& call) {
  context->saved_data["sizes"] = x.sizes().vec();
  context->saved_data["windows"] = std::vector<std::int64_t>{call.kernel[0], call.kernel[1],  call.stride[0],
                                                             call.stride[1], call.padding[0], call.padding[1]};
}

PoolCall call_of(AutogradContext* context) {
  const auto at = context->saved_data["windows"].toIntVector();
  return {{at[0], at[1]}, {at[2], at[3]}, {at[4], at[5]}};
}

class MaxPool : public torch::autograd::Function<MaxPool> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const PoolCall& call, bool relu) {
    const auto shape = pool_shape(x.sizes(), call);
    Tensor y = output_of(shape), chosen = torch::empty({shape.output_size()}, torch::kUInt8);
    ops::max_pool(shape, data(x), relu, data(y), chosen.data_ptr<std::uint8_t>());
    context->save_for_backward({chosen});
    save(context, x, call);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor chosen = context->get_saved_variables()[0];
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const auto shape = pool_shape(sizes, call_of(context));
    if (torch::GradMode::is_enabled()) return {scattered(shape, sizes, chosen, gradients[0]), {}, {}};
    const Tensor gradient = channels_last(gradients[0]);
    Tensor dx = empty_channels_last(sizes);
    ops::max_pool_backward(shape, data(gradient), chosen.data_ptr<std::uint8_t>(), data(dx));
    return {dx, {}, {}};
  }

 private:
  // The same by an operator that can be differentiated again: what was chosen does not depend on the gradient.
  static Tensor scattered(const ops::PoolShape& shape, at::IntArrayRef sizes, const Tensor& chosen,
                          const Tensor& gradient) {
    auto place = torch::zeros({shape.output_size()}, torch::kInt64);
    auto* to = place.data_ptr<std::int64_t>();
    const auto* of = chosen.data_ptr<std::uint8_t>();
    for (std::int64_t n = 0; n < shape.batch; ++n) {
      for (std::int64_t p = 0; p < shape.rows.outputs(); ++p) {
        for (std::int64_t q = 0; q < shape.columns.outputs(); ++q) {
          const auto &rows = shape.rows.window(p), &columns = shape.columns.window(q);
          const auto width = columns.end - columns.begin;
          for (std::int64_t c = 0; c < shape.channels; ++c, ++to, ++of) {
            if (*of == 255) continue;
            const auto row = rows.begin + *of / width, column = columns.begin + *of % width;
            *to = ((n * shape.rows.size() + row) * shape.columns.size() + column) * shape.channels + c;
          }
        }
      }
    }
    const Tensor flat = gradient.permute({0, 2, 3, 1}).reshape({-1}) * (chosen != 255);
    return torch::zeros({shape.input_size()}, gradient.options())
        .scatter_add(0, place, flat)
        .view({sizes[0], sizes[2], sizes[3], sizes[1]})
        .permute({0, 3, 1, 2});
  }
};

class MeanPool : public torch::autograd::Function<MeanPool> {
 public:
  // The divisor 0 is the number of the window's pixels.
  static Tensor forward(AutogradContext* context, const Tensor& x, const PoolCall& call, std::int64_t divisor) {
    const auto shape = pool_shape(x.sizes(), call);
    Tensor y = output_of(shape);
    ops::mean_pool(shape, data(x), divisor, data(y));
    save(context, x, call);
    context->saved_data["divisor"] = divisor;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const auto divisor = context->saved_data["divisor"].toInt();
    const PoolCall call = call_of(context);
    if (torch::GradMode::is_enabled()) {  // linear: the gradient does not depend on the input
      const auto anything = torch::zeros(sizes).requires_grad_();
      auto all = differentiable_gradients({anything}, gradients[0], [&](const variable_list& in) {
        return as_libtorch<at::_ops::avg_pool2d>(in[0].key_set(), in[0], at::IntArrayRef(call.kernel),
                                                 at::IntArrayRef(call.stride), at::IntArrayRef(call.padding), false,
                                                 divisor != 0, divisor == 0 ? MaybeInteger() : MaybeInteger(divisor));
      });
      return {all[0], {}, {}};
    }
    const Tensor gradient = channels_last(gradients[0]);
    Tensor dx = empty_channels_last(sizes);
    ops::mean_pool_backward(pool_shape(sizes, call), data(gradient), divisor, data(dx));
    return {dx, {}, {}};
  }
};

class AdaptiveMeanPool : public torch::autograd::Function<AdaptiveMeanPool> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, std::vector<std::int64_t> outputs) {
    const auto shape = adaptive_shape(x.sizes(), outputs);
    Tensor y = output_of(shape);
    ops::mean_pool(shape, data(x), 0, data(y));
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["outputs"] = std::move(outputs);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto sizes = context->saved_data["sizes"].toIntVector(),
               outputs = context->saved_data["outputs"].toIntVector();
    if (torch::GradMode::is_enabled()) {  // linear: the gradient does not depend on the input
      const auto anything = torch::zeros(sizes).requires_grad_();
      auto all = differentiable_gradients({anything}, gradients[0], [&](const variable_list& in) {
        return torch::_adaptive_avg_pool2d(in[0], outputs);
      });
      return {all[0], {}};
    }
    const Tensor gradient = channels_last(gradients[0]);
    Tensor dx = empty_channels_last(sizes);
    ops::mean_pool_backward(adaptive_shape(sizes, outputs), data(gradient), 0, data(dx));
    return {dx, {}};
  }
};

}  // namespace

bool takes_mean(const Tensor& x, const PoolCall& call) {
  if (!any_layer() || !plain_f32(x) || !is_channels_last(x) || x.numel() == 0) return false;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto kernel = call.kernel[side], padding = call.padding[side];
    if (kernel < 1 || call.stride[side] < 1 || padding < 0 || 2 * padding > kernel ||
        x.size(2 + static_cast<std::int64_t>(side)) + 2 * padding < kernel) {
      return false;
    }
  }
  return true;
}

Tensor mean_pool(const Tensor& x, const PoolCall& call, std::int64_t divisor) {
  return MeanPool::apply(x, call, divisor);
}

bool takes(const Tensor& x, const PoolCall& call) {
  return takes_mean(x, call) && call.kernel[0] * call.kernel[1] <= ops::kLargestMaxWindow;
}

Tensor max_pool(const Tensor& x, const PoolCall& call, bool relu) { return MaxPool::apply(x, call, relu); }

Tensor relu_max_pool(Tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const PoolCall call{{kernel, kernel}, {stride, stride}, {padding, padding}};
  if (takes(x, call)) return max_pool(x, call, true);
  return torch::max_pool2d(x.relu_(), kernel, stride, padding);
}

bool takes_adaptive(const Tensor& x, at::IntArrayRef outputs) {
  return any_layer() && plain_f32(x) && is_channels_last(x) && x.numel() > 0 && outputs.size() == 2 && outputs[0] > 0 &&
         outputs[1] > 0;
}

Tensor adaptive_mean_pool(const Tensor& x, at::IntArrayRef outputs) {
  return AdaptiveMeanPool::apply(x, outputs.vec());
}

}  // namespace trireme::operators
