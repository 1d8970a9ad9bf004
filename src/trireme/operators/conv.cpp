#include "trireme/operators/conv.h"

#include <utility>
#include <vector>

#include "trireme/operators/conv_choice.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ops::ConvShape conv_shape(const ConvCall& call) {
  const auto &x = call.input, &w = call.weight;
  return {.batch = x.size(0),
          .in_channels = x.size(1),
          .height = x.size(2),
          .width = x.size(3),
          .out_channels = w.size(0),
          .kernel = {w.size(2), w.size(3)},
          .stride = call.stride,
          .padding = call.padding,
          .dilation = call.dilation,
          .groups = call.groups};
}

// What a node keeps besides tensors.
struct ConvNode : torch::CustomClassHolder {
  ops::ConvShape shape;
  std::shared_ptr<Layer> layer;
  bool bias = false;
  bool bf16 = false;
};

Tensor run_chosen(const ConvPass& pass, Layer& layer, bool bf16) {
  const auto choice = conv_choice(pass.shape, pass.pass, layer.settings(), bf16);
  Tensor result = choice->run(pass);
  layer.note_choice(choice.get(), [&] { return choice->use(); });
  return result;
}

// y = relu(y + bias), in place.
void add_bias_relu(Tensor& y, const Tensor& bias, bool relu) {
  if (!bias.defined() && !relu) return;
  const auto one = torch::ones({y.size(1)}, torch::kFloat32);
  const auto shift = bias.defined() ? bias : torch::zeros_like(one);
  ops::normalize(rows_of(y), data(y), {data(one), data(shift), nullptr, relu}, data(y));
}

class Conv : public torch::autograd::Function<Conv> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const MaybeTensor& maybe_bias, const c10::intrusive_ptr<ConvNode>& node, bool relu) {
    const Tensor bias = maybe_bias.value_or(Tensor());
    const Tensor plain_weight = weight.contiguous();
    Tensor y = run_chosen({node->shape, ops::Pass::forward, input, plain_weight, {}, relu ? Tensor() : bias},
                          *node->layer, node->bf16);
    if (relu) add_bias_relu(y, bias, true);
    node->bias = bias.defined() && bias.requires_grad();
    context->save_for_backward({input, weight, bias, relu ? y : Tensor()});
    context->saved_data["node"] = c10::IValue::make_capsule(node);
    context->saved_data["data"] = input.requires_grad();
    context->saved_data["weights"] = weight.requires_grad();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const WithoutAutocast without_autocast;
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &y = saved[3];
    const auto node = c10::static_intrusive_pointer_cast<ConvNode>(context->saved_data["node"].toCapsule());
    const auto& shape = node->shape;
    if (torch::GradMode::is_enabled()) {
      const Tensor g = y.defined() ? gradients[0] * (y > 0) : gradients[0];
      auto all = differentiable_gradients({input, weight, bias}, g, [&](const variable_list& in) {
        return at::convolution(in[0], in[1], maybe(in[2]), shape.stride, shape.padding, shape.dilation, false, {0, 0},
                               shape.groups);
      });
      return {all[0], all[1], all[2], {}, {}};
    }
    Tensor gradient = channels_last(gradients[0]), dinput, dweight, dbias;
    const bool of_bias = node->bias;
    if (y.defined() || of_bias) {
      dbias = torch::empty({shape.out_channels});
      Tensor masked = y.defined() ? empty_channels_last(y.sizes()) : Tensor();
      ops::relu_backward(rows_of(gradient), data(gradient), data(y), data(masked), data(dbias));
      if (masked.defined()) gradient = masked;
      if (!of_bias) dbias = Tensor();
    }
    if (context->saved_data["data"].toBool()) {
      dinput = run_chosen({shape, ops::Pass::data, {}, weight.contiguous(), gradient}, *node->layer, node->bf16);
    }
    if (context->saved_data["weights"].toBool()) {
      dweight = run_chosen({shape, ops::Pass::weights, input, {}, gradient}, *node->layer, node->bf16);
    }
    return {dinput, dweight, dbias, {}, {}};
  }
};

}  // namespace

bool takes(const ConvCall& call) {
  const auto &x = call.input, &w = call.weight;
  if (!plain_f32(x) || !plain_f32(w) || !absent_or_plain_f32(call.bias)) return false;
  if (x.dim() != 4 || w.dim() != 4 || x.numel() == 0 || w.numel() == 0) return false;
  if (call.groups < 1 || x.size(1) != w.size(1) * call.groups || w.size(0) % call.groups != 0) return false;
  if (call.bias.defined() && (call.bias.dim() != 1 || call.bias.size(0) != w.size(0))) return false;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto size = x.size(2 + static_cast<std::int64_t>(side)), kernel = w.size(2 + static_cast<std::int64_t>(side));
    if (call.stride[side] < 1 || call.padding[side] < 0 || call.dilation[side] < 1) return false;
    if (call.dilation[side] * (kernel - 1) + 1 > size + 2 * call.padding[side]) return false;
  }
  return true;
}

Tensor convolution(const ConvCall& call, const std::shared_ptr<Layer>& layer, const Epilogue& epilogue) {
  auto node = c10::make_intrusive<ConvNode>();
  node->shape = conv_shape(call);
  node->layer = layer;
  node->bf16 = call.bf16;
  return Conv::apply(channels_last(call.input), call.weight,
                     call.bias.defined() ? maybe(call.bias.contiguous()) : MaybeTensor(), node, epilogue.relu);
}

}  // namespace trireme::operators
