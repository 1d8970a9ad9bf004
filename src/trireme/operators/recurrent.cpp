#include "trireme/operators/recurrent.h"

#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/operators/tensors.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RecurrentNode : torch::CustomClassHolder {
  ops::RecurrentShape shape;
  bool biases = true;

  bool lstm() const { return shape.kind == ops::RecurrentKind::lstm; }
  std::size_t each() const { return biases ? 4 : 2; }  // tensors of a layer
};

std::vector<ops::RecurrentWeights> weights_of(const RecurrentNode& node, const Tensor* first) {
  std::vector<ops::RecurrentWeights> all;
  for (std::int64_t layer = 0; layer < node.shape.layers; ++layer, first += node.each()) {
    all.push_back({data(first[0]), data(first[1]), node.biases ? data(first[2]) : nullptr,
                   node.biases ? data(first[3]) : nullptr});
  }
  return all;
}

class Recurrent : public torch::autograd::Function<Recurrent> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& input, const Tensor& h0,
                               const MaybeTensor& maybe_c0, at::TensorList weights,
                               const c10::intrusive_ptr<RecurrentNode>& node) {
    const auto& shape = node->shape;
    const Tensor c0 = maybe_c0.value_or(Tensor());
    Tensor output = torch::empty({shape.steps, shape.batch, shape.hidden}), h = torch::empty(h0.sizes()),
           c = node->lstm() ? torch::empty(h0.sizes()) : Tensor(), saved = torch::empty({shape.saved_size()});
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
    context->set_materialize_grads(false);
    return node->lstm() ? variable_list{output, h, c} : variable_list{output, h};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto node = c10::static_intrusive_pointer_cast<RecurrentNode>(context->saved_data["node"].toCapsule());
    const auto& shape = node->shape;
    if (torch::GradMode::is_enabled()) return again(saved, *node, gradients);
    const auto dense = [](const Tensor& x) { return x.defined() ? x.contiguous() : x; };
    const Tensor d_output = dense(gradients[0]), d_h = dense(gradients[1]),
                 d_c = node->lstm() ? dense(gradients[2]) : Tensor();
    std::size_t edge = 0;
    const auto wanted = [&](const Tensor& x) {
      return context->needs_input_grad(edge++) ? torch::empty_like(x) : Tensor();
    };
    variable_list result{wanted(saved[0]), wanted(saved[1]), node->lstm() ? wanted(saved[2]) : Tensor()};
    for (std::size_t k = kWeights; k < saved.size(); ++k) result.push_back(wanted(saved[k]));
    std::vector<ops::RecurrentGradients> into;
    for (std::size_t k = 3; k < result.size(); k += node->each()) {
      into.push_back({data(result[k]), data(result[k + 1]), node->biases ? data(result[k + 2]) : nullptr,
                      node->biases ? data(result[k + 3]) : nullptr});
    }
    Tensor workspace = torch::empty({shape.workspace_size()});
    ops::recurrent_backward(shape, weights_of(*node, saved.data() + kWeights), into,
                            {.input = data(saved[0]),
                             .h0 = data(saved[1]),
                             .c0 = data(saved[2]),
                             .output = data(saved[3]),
                             .saved = data(saved[4]),
                             .d_output = data(d_output),
                             .d_h = data(d_h),
                             .d_c = data(d_c),
                             .d_input = data(result[0]),
                             .d_h0 = data(result[1]),
                             .d_c0 = data(result[2]),
                             .workspace = data(workspace)});
    result.emplace_back();  // the node
    return result;
  }

 private:
  static constexpr std::size_t kWeights = 5;  // where they begin in what was saved

  // By LibTorch's steps.
  static variable_list again(const variable_list& saved, const RecurrentNode& node, const variable_list& gradients) {
    variable_list inputs{saved[0], saved[1], saved[2]};
    inputs.insert(inputs.end(), saved.begin() + kWeights, saved.end());
    // One number whose gradient is that of all results.
    auto all = differentiable_gradients(inputs, torch::ones({}), [&](const variable_list& in) {
      const std::vector<Tensor> weights(in.begin() + 3, in.end());
      const auto layers = node.shape.layers;
      variable_list results(gradients.size());
      if (node.lstm()) {
        const std::vector<Tensor> state{in[1], in[2]};
        std::tie(results[0], results[1], results[2]) =
            at::native::lstm(in[0], state, weights, node.biases, layers, 0, true, false, false);
      } else {
        std::tie(results[0], results[1]) =
            at::native::gru(in[0], in[1], weights, node.biases, layers, 0, true, false, false);
      }
      Tensor sum = torch::zeros({});
      for (std::size_t k = 0; k < results.size(); ++k) {
        if (gradients[k].defined()) sum = sum + (results[k] * gradients[k]).sum();
      }
      return sum;
    });
    all.emplace_back();
    return all;
  }
};

struct Results {
  Tensor output, h, c;
};

// Of layers without anything between them, in one direction.
Results run_stack(ops::RecurrentKind kind, const Tensor& input, const Tensor& h0, const Tensor& c0,
                  at::TensorList weights, bool biases, std::int64_t layers) {
  auto node = c10::make_intrusive<RecurrentNode>();
  node->biases = biases;
  node->shape = {.kind = kind,
                 .layers = layers,
                 .input = input.size(2),
                 .hidden = weights[1].size(1),
                 .steps = input.size(0),
                 .batch = input.size(1)};
  const auto state = [](const Tensor& x) { return x.defined() ? MaybeTensor(x.contiguous()) : MaybeTensor(); };
  auto results = Recurrent::apply(input.contiguous(), h0.contiguous(), state(c0), weights, node);
  return {results[0], results[1], node->lstm() ? results[2] : Tensor()};
}

// Layer by layer, as LibTorch does; the other direction reads its input from the end.
Results run_layers(const RecurrentCall& call, Tensor x) {
  const std::size_t each = call.biases ? 4 : 2;
  const at::TensorList weights(call.weights);
  variable_list h, c;
  for (std::int64_t layer = 0; layer < call.layers; ++layer) {
    if (layer > 0 && call.dropout > 0) x = torch::dropout(x, call.dropout, /*train=*/true);
    variable_list outputs;
    for (std::int64_t direction = 0; direction < call.directions(); ++direction) {
      const std::int64_t at = layer * call.directions() + direction;
      const auto state = [&](const Tensor& all) { return all.defined() ? all.narrow(0, at, 1) : all; };
      const auto results = run_stack(call.kind, direction == 0 ? x : x.flip(0), state(call.h0), state(call.c0),
                                     weights.slice(static_cast<std::size_t>(at) * each, each), call.biases, 1);
      outputs.push_back(direction == 0 ? results.output : results.output.flip(0));
      h.push_back(results.h);
      if (results.c.defined()) c.push_back(results.c);
    }
    x = outputs.size() == 1 ? outputs[0] : torch::cat(outputs, 2);
  }
  return {x, torch::cat(h), c.empty() ? Tensor() : torch::cat(c)};
}

}  // namespace

bool takes(const RecurrentCall& call) {
  const std::size_t each = call.biases ? 4 : 2;
  const auto stacks = static_cast<std::size_t>(call.layers * call.directions());
  if (call.layers < 1 || call.weights.size() != each * stacks) return false;  // projections have more
  if (call.dropout < 0 || call.dropout >= 1) return false;
  const auto plain = [](const Tensor& x) { return plain_f32(x) && x.is_contiguous(); };
  if (!plain_f32(call.input) || call.input.dim() != 3 || call.input.numel() == 0) return false;
  if (!std::ranges::all_of(call.weights, plain)) return false;
  const bool lstm = call.kind == ops::RecurrentKind::lstm;
  const auto features = call.input.size(2), batch = call.input.size(call.batch_first ? 0 : 1);
  const auto hidden = call.weights[1].size(-1), gates = (lstm ? 4 : 3) * hidden;
  const std::vector<std::int64_t> state{call.layers * call.directions(), batch, hidden};
  const auto is_state = [&](const Tensor& x) { return plain_f32(x) && x.sizes() == at::IntArrayRef(state); };
  if (hidden == 0 || !is_state(call.h0) || (lstm && !is_state(call.c0))) return false;
  const auto is = [](const Tensor& x, at::IntArrayRef sizes) { return x.sizes() == sizes; };
  for (std::size_t k = 0; k < stacks; ++k) {
    const Tensor* own = call.weights.data() + k * each;
    const bool first = k < static_cast<std::size_t>(call.directions());
    if (!is(own[0], {gates, first ? features : hidden * call.directions()}) || !is(own[1], {gates, hidden}))
      return false;
    if (call.biases && (!is(own[2], {gates}) || !is(own[3], {gates}))) return false;
  }
  return true;
}

std::tuple<Tensor, Tensor, Tensor> recurrent(const RecurrentCall& call, const std::shared_ptr<Layer>& layer) {
  const Tensor input = call.batch_first ? call.input.transpose(0, 1) : call.input;
  const bool whole = !call.bidirectional && (call.layers == 1 || call.dropout == 0);
  const auto results = whole ? run_stack(call.kind, input, call.h0, call.c0, call.weights, call.biases, call.layers)
                             : run_layers(call, input);
  layer->note({.operation = call.kind == ops::RecurrentKind::lstm ? "lstm" : "gru",
               .shape = fmt::format("{}x{}x{} {}x{}{}", input.size(0), input.size(1), input.size(2), call.layers,
                                    call.weights[1].size(1), call.bidirectional ? " both ways" : ""),
               .pass = "all",
               .picked = "fused"});
  return {call.batch_first ? results.output.transpose(0, 1) : results.output, results.h, results.c};
}

}  // namespace trireme::operators
