#include "trireme/operators/tensors.h"

#include <torch/csrc/jit/frontend/tracer.h>

namespace trireme::operators {

bool plain_f32(const torch::Tensor& x) {
  // Nothing else looks at the tensor on its way: no wrapper, no lazily negated or zero one.
  constexpr c10::DispatchKeySet kPlain{c10::DispatchKey::CPU, c10::DispatchKey::ADInplaceOrView,
                                       c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutocastCPU};
  return x.defined() && (x.key_set() | kPlain) == kPlain && x.scalar_type() == torch::kFloat32 && !x.is_inference() &&
         !torch::jit::tracer::isTracing();
}

bool is_channels_last(const torch::Tensor& x) {
  return x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

torch::Tensor empty_channels_last(at::IntArrayRef sizes) {
  return torch::empty(sizes, torch::TensorOptions(torch::kFloat32).memory_format(at::MemoryFormat::ChannelsLast));
}

ops::RowShape rows_of(const torch::Tensor& x) { return {x.size(0) * x.size(2) * x.size(3), x.size(1)}; }

torch::autograd::variable_list differentiable_gradients(const torch::autograd::variable_list& inputs,
                                                        const torch::Tensor& gradient, const Forward& forward) {
  // Views of the inputs: one input may be made from another, and only what `forward` itself does counts here.
  torch::autograd::variable_list views = inputs, wanted, all(inputs.size());
  for (auto& view : views) {
    if (!view.defined() || !view.requires_grad()) continue;
    view = view.view_as(view);
    wanted.push_back(view);
  }
  if (wanted.empty()) return all;
  const auto found = torch::autograd::grad({forward(views)}, wanted, {gradient}, /*retain_graph=*/true,
                                           /*create_graph=*/true, /*allow_unused=*/true);
  auto next = found.begin();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].defined() && inputs[k].requires_grad()) all[k] = *next++;
  }
  return all;
}

}  // namespace trireme::operators
