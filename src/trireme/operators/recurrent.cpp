#include "trireme/operators/recurrent.h"

#include <ATen/ops/lstm_native.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/operators/tensors.h"
#include "trireme/ops/recurrent/recurrent.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RecurrentNode : torch::CustomClassHolder {
  ops::RecurrentShape shape;
  bool biases = true;
};

std::vector<ops::RecurrentWeights> weights_of(const RecurrentNode& node, const Tensor* first) {
  std::vector<ops::RecurrentWeights> all;
  const std::size_t each = node.biases ? 4 : 2;
  for (std::int64_t layer = 0; layer < node.shape.layers; ++layer, first += each) {
    all.push_back({data(first[0]), data(first[1]), node.biases ? data(first[2]) : nullptr,
                   node.biases ? data(first[3]) : nullptr});
  }
  return all;
}

class Lstm : public torch::autograd::Function<Lstm> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& input, const Tensor& h0, const Tensor& c0,
                               at::TensorList weights, const c10::intrusive_ptr<RecurrentNode>& node) {
    const auto& shape = node->shape;
    Tensor output = torch::empty({shape.steps, shape.batch, shape.hidden}), h = torch::empty(h0.sizes()),
           c = torch::empty(h0.sizes()), saved = torch::empty({shape.saved_size()});
    ops::recurrent_forward(shape, weights_of(*node, weights.data()),
                           {.input = data(input),
                            .h0 = data(h0),
                            .c0 = data(c0),
                            .output = data(output),
                            .h = data(h),
                            .c = data(c),
                            .saved = data(saved)});
    variable_list keep{input, h0, c0, output, saved};
    keep.insert(keep.end(), weights.begin(), weights.end());
    context->save_for_backward(keep);
    context->saved_data["node"] = c10::IValue::make_capsule(node);
    context->saved_data["data"] = input.requires_grad();
    return {output, h, c};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto node = c10::static_intrusive_pointer_cast<RecurrentNode>(context->saved_data["node"].toCapsule());
    const auto& shape = node->shape;
    constexpr std::size_t kFirst = 5;  // of the weights
    if (torch::GradMode::is_enabled()) return again(saved, *node, gradients);
    const auto dense = [](const Tensor& x) { return x.defined() ? x.contiguous() : x; };
    const Tensor d_output = dense(gradients[0]), d_h = dense(gradients[1]), d_c = dense(gradients[2]);
    Tensor d_input = context->saved_data["data"].toBool() ? torch::empty_like(saved[0]) : Tensor();
    Tensor d_h0 = torch::empty_like(saved[1]), d_c0 = torch::empty_like(saved[2]),
           workspace = torch::empty({shape.workspace_size()});
    variable_list result{d_input, d_h0, d_c0};
    std::vector<ops::RecurrentGradients> into;
    const std::size_t each = node->biases ? 4 : 2;
    for (std::size_t k = kFirst; k < saved.size(); ++k) result.push_back(torch::empty_like(saved[k]));
    for (std::size_t k = 3; k < result.size(); k += each) {
      into.push_back({data(result[k]), data(result[k + 1]), node->biases ? data(result[k + 2]) : nullptr,
                      node->biases ? data(result[k + 3]) : nullptr});
    }
    ops::recurrent_backward(shape, weights_of(*node, saved.data() + kFirst), into,
                            {.input = data(saved[0]),
                             .h0 = data(saved[1]),
                             .c0 = data(saved[2]),
                             .output = data(saved[3]),
                             .saved = data(saved[4]),
                             .d_output = data(d_output),
                             .d_h = data(d_h),
                             .d_c = data(d_c),
                             .d_input = data(d_input),
                             .d_h0 = data(d_h0),
                             .d_c0 = data(d_c0),
                             .workspace = data(workspace)});
    result.emplace_back();  // the node
    return result;
  }

 private:
  // By LibTorch's steps.
  static variable_list again(const variable_list& saved, const RecurrentNode& node, const variable_list& gradients) {
    variable_list inputs{saved[0], saved[1], saved[2]};
    inputs.insert(inputs.end(), saved.begin() + 5, saved.end());
    // One number whose gradient is that of all three results.
    auto all = differentiable_gradients(inputs, torch::ones({}), [&](const variable_list& in) {
      const std::vector<Tensor> state{in[1], in[2]}, weights(in.begin() + 3, in.end());
      const auto [output, h, c] =
          at::native::lstm(in[0], state, weights, node.biases, node.shape.layers, 0, true, false, false);
      Tensor sum = torch::zeros({});
      if (gradients[0].defined()) sum = sum + (output * gradients[0]).sum();
      if (gradients[1].defined()) sum = sum + (h * gradients[1]).sum();
      if (gradients[2].defined()) sum = sum + (c * gradients[2]).sum();
      return sum;
    });
    all.emplace_back();
    return all;
  }
};

}  // namespace

bool takes(const RecurrentCall& call) {
  const std::size_t each = call.biases ? 4 : 2;
  const auto layers = static_cast<std::size_t>(call.layers);
  if (call.layers < 1 || call.weights.size() != each * layers) return false;  // projections have more
  const auto plain = [](const Tensor& x) { return plain_f32(x) && x.is_contiguous(); };
  if (!plain_f32(call.input) || call.input.dim() != 3 || call.input.numel() == 0) return false;
  if (!plain_f32(call.h0) || !plain_f32(call.c0) || !std::ranges::all_of(call.weights, plain)) return false;
  const auto features = call.input.size(2), batch = call.input.size(call.batch_first ? 0 : 1);
  const auto hidden = call.weights[1].size(1);
  const std::vector<std::int64_t> state{call.layers, batch, hidden};
  if (call.h0.sizes() != at::IntArrayRef(state) || call.c0.sizes() != at::IntArrayRef(state)) return false;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto& w_ih = call.weights[layer * each];
    const auto& w_hh = call.weights[layer * each + 1];
    if (w_ih.dim() != 2 || w_ih.size(0) != 4 * hidden || w_ih.size(1) != (layer == 0 ? features : hidden)) return false;
    if (w_hh.dim() != 2 || w_hh.size(0) != 4 * hidden || w_hh.size(1) != hidden) return false;
  }
  return true;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const RecurrentCall& call, const std::shared_ptr<Layer>& layer) {
  auto node = c10::make_intrusive<RecurrentNode>();
  const Tensor input = (call.batch_first ? call.input.transpose(0, 1) : call.input).contiguous();
  node->biases = call.biases;
  node->shape = {.layers = call.layers,
                 .input = input.size(2),
                 .hidden = call.weights[1].size(1),
                 .steps = input.size(0),
                 .batch = input.size(1)};
  auto results = Lstm::apply(input, call.h0.contiguous(), call.c0.contiguous(), at::TensorList(call.weights), node);
  layer->note({.operation = "lstm",
               .shape = fmt::format("{}x{}x{} {}x{}", input.size(0), input.size(1), input.size(2), call.layers,
                                    node->shape.hidden),
               .pass = "all",
               .picked = "fused"});
  return {call.batch_first ? results[0].transpose(0, 1) : results[0], results[1], results[2]};
}

}  // namespace trireme::operators
