#include "trireme/parallel/pipeline/stage.h"

#include <set>

#include "trireme/parallel/pipeline/version_counter.h"

namespace trireme::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The identity, but what comes out is not a leaf: layers may change it in place.
struct Gate : torch::autograd::Function<Gate> {
  static torch::Tensor forward(AutogradContext*, const torch::Tensor& input) { return input.variable_data(); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0]}; }
};

nn::Values without_history(const nn::Values& values) {
  nn::Values plain;
  for (const auto& value : values) plain.push_back(value.detach());
  return plain;
}

// Results that have a gradient, with it.
struct Roots {
  variable_list values, gradients;
};
Roots roots_of(const nn::Values& outputs, const nn::Values& gradients) {
  Roots roots;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].requires_grad() || !gradients.at(k).defined()) continue;
    roots.values.push_back(outputs[k]);
    roots.gradients.push_back(gradients[k]);
  }
  return roots;
}

}  // namespace

Stage::Stage(const torch::nn::Module& model, const nn::Chain& chain, std::size_t first, std::size_t last,
             const StageOptions& options)
    : chain_(chain), first_(first), last_(last), options_(options) {
  const std::size_t each = options.segment > 0 ? options.segment : std::max<std::size_t>(1, last - first);
  std::set<const void*> seen;
  for (std::size_t at = first; at < last; at += each) {
    Segment segment{at, std::min(at + each, last), {}, {}, {}};
    segment.parameters = nn::parameters_of(model, chain, segment.first, segment.last);
    for (const auto& [name, tensor] : segment.parameters) {
      if (tensor.requires_grad()) segment.learning.push_back(tensor);
      apart_ &= seen.insert(tensor.unsafeGetTensorImpl()).second;
    }
    for (const auto& [name, tensor] : nn::buffers_of(model, chain, segment.first, segment.last)) {
      segment.buffers.push_back(tensor);
    }
    segments_.push_back(std::move(segment));
  }
}

// Normalization keeps its running statistics for a backward that does not read them, and autograd would refuse it once
// another micro-batch has moved them: so each forward finds, and leaves, them at the same version.
nn::Values Stage::run(const Segment& segment, const nn::Values& inputs) const {
  for (const auto& buffer : segment.buffers) set_version(buffer, 0);
  return nn::run(chain_, inputs, segment.first, segment.last);
}

nn::Values Stage::leaves(const nn::Values& values, bool gradients) const {
  nn::Values found;
  for (const auto& value : values) {
    found.push_back(value.detach());
    if (gradients && value.is_floating_point()) found.back().set_requires_grad(true);
  }
  return found;
}

nn::Values Stage::forward(int micro_batch, nn::Values inputs) {
  auto& all = kept_[micro_batch];
  all.assign(segments_.size(), {});
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    if (watch_) watch_->before_forward(k);
    inputs = forward_segment(k, std::move(inputs), all[k]);
    if (probe_) probe_();
    if (watch_) watch_->after_forward(k);
  }
  return inputs;
}

nn::Values Stage::forward_segment(std::size_t k, nn::Values inputs, Kept& kept) {
  const auto& segment = segments_[k];
  kept.inputs = leaves(inputs, k > 0 || options_.input_gradients);
  if (!options_.recompute) {
    nn::Values open;
    for (const auto& input : kept.inputs) open.push_back(input.requires_grad() ? Gate::apply(input) : input);
    kept.outputs = run(segment, open);
    return without_history(kept.outputs);
  }
  torch::NoGradGuard no_grad;
  kept.random = nn::random_state();
  nn::Values scratch;  // a layer may change its input in place, and this one is needed again
  for (const auto& input : kept.inputs) scratch.push_back(input.is_floating_point() ? input.clone() : input);
  return run(segment, scratch);
}

void Stage::compute_again(const Segment& segment, Kept& kept) const {
  nn::RandomScope random(kept.random);
  std::vector<torch::Tensor> before;  // running statistics have seen this micro-batch already
  for (const auto& buffer : segment.buffers) before.push_back(buffer.clone());
  nn::Values open;
  for (const auto& input : kept.inputs) open.push_back(input.requires_grad() ? Gate::apply(input) : input);
  kept.outputs = run(segment, open);
  torch::NoGradGuard no_grad;
  for (std::size_t k = 0; k < before.size(); ++k) {
    const auto version = segment.buffers[k]._version();
    segment.buffers[k].copy_(before[k]);
    set_version(segment.buffers[k], static_cast<std::uint32_t>(version));
  }
}

nn::Values Stage::backward(int micro_batch, nn::Values gradients, bool last) {
  auto& all = kept_.at(micro_batch);
  for (std::size_t k = segments_.size(); k-- > 0;) {
    if (watch_) watch_->before_backward(k);
    if (options_.recompute) compute_again(segments_[k], all[k]);
    if (probe_) probe_();
    if (auto roots = roots_of(all[k].outputs, gradients); !roots.values.empty()) {
      torch::autograd::backward(roots.values, roots.gradients);
    }
    gradients.clear();
    for (const auto& input : all[k].inputs) gradients.push_back(input.grad());
    all[k] = {};
    if (watch_) watch_->after_backward(k, last);
  }
  kept_.erase(micro_batch);
  return gradients;
}

nn::Values Stage::backward_inputs(int micro_batch, nn::Values gradients) {
  auto& all = kept_.at(micro_batch);
  for (std::size_t k = segments_.size(); k-- > 0;) {
    auto& kept = all[k];
    if (watch_) watch_->before_backward(k);
    if (options_.recompute) compute_again(segments_[k], kept);
    kept.gradients = gradients;
    variable_list wanted;
    for (const auto& input : kept.inputs) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    gradients.assign(kept.inputs.size(), {});
    auto roots = roots_of(kept.outputs, kept.gradients);
    if (wanted.empty() || roots.values.empty()) continue;
    auto found = torch::autograd::grad(roots.values, wanted, roots.gradients, /*retain_graph=*/true,
                                       /*create_graph=*/false, /*allow_unused=*/true);
    for (std::size_t i = 0, next = 0; i < kept.inputs.size(); ++i) {
      if (kept.inputs[i].requires_grad()) gradients[i] = found[next++];
    }
  }
  return gradients;
}

void Stage::backward_weights(int micro_batch, bool last) {
  auto& all = kept_.at(micro_batch);
  for (std::size_t k = segments_.size(); k-- > 0;) {
    auto roots = roots_of(all[k].outputs, all[k].gradients);
    if (!roots.values.empty() && !segments_[k].learning.empty()) {
      torch::autograd::backward(roots.values, roots.gradients, /*retain_graph=*/false, /*create_graph=*/false,
                                segments_[k].learning);
    }
    all[k] = {};
    if (watch_) watch_->after_backward(k, last);
  }
  kept_.erase(micro_batch);
}

nn::Values Stage::evaluate(nn::Values inputs) {
  torch::NoGradGuard no_grad;
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    if (watch_) watch_->before_forward(k);
    inputs = run(segments_[k], inputs);
    if (watch_) watch_->after_forward(k);
  }
  return inputs;
}

}  // namespace trireme::parallel
