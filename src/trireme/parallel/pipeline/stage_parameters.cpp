#include "trireme/parallel/pipeline/stage_parameters.h"

#include <map>

#include "trireme/parallel/tensor/tensor_collectives.h"

namespace trireme::parallel {
namespace {

// For every parameter name in the model's order, the stages that use it.
std::vector<std::pair<std::string, std::set<int>>> users(const torch::nn::Module& model, const nn::Chain& chain,
                                                         const Starts& starts, int stages) {
  std::map<std::string, std::set<int>> by_name;
  for (std::size_t part = 0; part < starts.size(); ++part) {
    for (const auto& [name, tensor] :
         nn::parameters_of(model, chain, starts[part], end_of_part(starts, part, chain.size()))) {
      by_name[name].insert(static_cast<int>(part) % stages);
    }
  }
  std::vector<std::pair<std::string, std::set<int>>> found;
  for (const auto& item : model.named_parameters()) {
    if (auto at = by_name.find(item.key()); at != by_name.end()) found.emplace_back(item.key(), at->second);
  }
  return found;
}

}  // namespace

std::size_t end_of_part(const Starts& starts, std::size_t part, std::size_t pieces) {
  return part + 1 < starts.size() ? starts[part + 1] : pieces;
}

StageParameters stage_parameters_of(const torch::nn::Module& model, const nn::Chain& chain, const Starts& starts,
                                    int stages, int stage) {
  StageParameters held;
  const auto all = model.named_parameters();
  for (const auto& [name, stages_of] : users(model, chain, starts, stages)) {
    if (!stages_of.contains(stage)) continue;
    held.parameters.emplace_back(name, all[name]);
    if (*stages_of.begin() == stage) held.first_here.insert(name);
  }
  std::set<std::string> mine;
  for (std::size_t part = static_cast<std::size_t>(stage); part < starts.size(); part += stages) {
    for (const auto& [name, tensor] :
         nn::buffers_of(model, chain, starts[part], end_of_part(starts, part, chain.size()))) {
      mine.insert(name);
    }
  }
  for (const auto& item : model.named_buffers()) {
    if (mine.contains(item.key())) held.buffers.emplace_back(item.key(), item.value());
  }
  return held;
}

void release_others(torch::nn::Module& model, const StageParameters& held) {
  std::set<const void*> kept;
  for (const auto& [name, tensor] : held.parameters) kept.insert(tensor.unsafeGetTensorImpl());
  for (const auto& [name, tensor] : held.buffers) kept.insert(tensor.unsafeGetTensorImpl());
  torch::NoGradGuard no_grad;
  auto release = [&](torch::Tensor tensor) {
    if (tensor.defined() && !kept.contains(tensor.unsafeGetTensorImpl())) {
      tensor.set_data(torch::empty({0}, tensor.options()));
    }
  };
  for (auto& tensor : model.parameters()) release(tensor);
  for (auto& tensor : model.buffers()) release(tensor);
}

TiedWeights::TiedWeights(const torch::nn::Module& model, const nn::Chain& chain, const Starts& starts,
                         Communicator& pipe) {
  std::map<std::set<int>, nn::Named> shared;  // ordered: every stage splits in the same order
  const auto all = model.named_parameters();
  for (const auto& [name, stages] : users(model, chain, starts, pipe.size())) {
    if (stages.size() > 1 && all[name].requires_grad()) shared[stages].emplace_back(name, all[name]);
  }
  for (auto& [stages, named] : shared) {
    auto comm = pipe.split(stages.contains(pipe.rank()) ? 0 : -1);
    if (!comm) continue;
    auto& group = groups_.emplace_back(Group{std::move(*comm), {}, {}});
    for (auto& [name, tensor] : named) {
      group.names.push_back(name);
      group.tensors.push_back(tensor);
    }
  }
}

void TiedWeights::sum_gradients() {
  torch::NoGradGuard no_grad;
  for (auto& group : groups_) {
    for (auto& tensor : group.tensors) {
      auto gradient = tensor.grad().defined() ? tensor.grad() : torch::zeros_like(tensor);
      auto host = gradient.to(torch::kCPU).contiguous();
      group.comm.all_reduce(view_of(host));
      if (!host.is_alias_of(gradient)) gradient.copy_(host);
      tensor.mutable_grad() = gradient;
    }
  }
}

}  // namespace trireme::parallel
