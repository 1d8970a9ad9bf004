#include "trireme/grad/parameters.h"

#include <unordered_set>

namespace trireme::grad {

std::vector<Parameter> learning(const torch::nn::Module& model) {
  std::vector<Parameter> found;
  std::unordered_set<const void*> seen;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().defined() || !item.value().requires_grad()) continue;
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) found.push_back({item.key(), item.value()});
  }
  return found;
}

std::vector<Parameter> buffers_of(const torch::nn::Module& model) {
  std::vector<Parameter> found;
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) found.push_back({item.key(), item.value()});
  }
  return found;
}

std::vector<Parameter> everything(const torch::nn::Module& model) {
  std::vector<Parameter> found;
  for (const auto& item : model.named_parameters()) {
    if (item.value().defined()) found.push_back({item.key(), item.value()});
  }
  for (auto& buffer : buffers_of(model)) found.push_back(std::move(buffer));
  return found;
}

}  // namespace trireme::grad
