#include "trireme/train/learner/tensor_costs.h"

#include "trireme/base/error.h"
#include "trireme/parallel/tensor/tensor_rules.h"

namespace trireme::train {

std::vector<mesh::TensorCost> tensor_costs(const Config& config, torch::nn::Module& model, const nn::Chain& chain,
                                           std::span<const mesh::PieceCost> costs) {
  std::vector<mesh::TensorCost> found(chain.size());
  // Pieces that have parameters of a layer.
  const auto mark = [&](const std::string& layer, bool mesh::TensorCost::*what) {
    for (std::size_t k = 0; k < chain.size(); ++k) {
      for (const auto& [name, tensor] : nn::parameters_of(model, chain, k, k + 1)) {
        if (!name.starts_with(layer + ".")) continue;
        found[k].*what = true;
        found[k].communicated_bytes = 2 * costs[k].output_bytes;
      }
    }
  };
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (item.value()->as<torch::nn::LinearImpl>()) mark(item.key(), &mesh::TensorCost::fully_connected);
  }
  try {
    const auto text = config.tensor_rule == "auto" ? parallel::default_rules(config.model, model) : config.tensor_rule;
    for (const auto& [layer, kind] : parallel::TensorRules(text).kinds_in(model)) {
      mark(layer, &mesh::TensorCost::splittable);
    }
  } catch (const ConfigError&) {  // a model without rules has no tensor axis
    if (config.tensor_rule != "auto") throw;
  }
  return found;
}

}  // namespace trireme::train
