#include "trireme/operators/optimize.h"

#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "trireme/operators/registry.h"
#include "trireme/operators/replace.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::operators {

void optimize(const torch::nn::Module& module, const Settings& settings) {
  const bool ours = settings.operators != Operators::libtorch;
  if (ours) replace_operators();
  // Not again: others may compute by now.
  if (ours && !settings.instructions.empty() && settings.instructions != ops::instruction_set()) {
    ops::set_instruction_set(settings.instructions);
  }
  std::map<std::string, std::shared_ptr<Layer>> by_name;
  for (const auto& item : module.named_parameters()) {
    const auto dot = item.key().rfind('.');
    const auto name = dot == std::string::npos ? std::string("(model)") : item.key().substr(0, dot);
    std::shared_ptr<Layer>& layer = by_name[name];
    if (ours && !layer) layer = std::make_shared<Layer>(name, settings);
    set_layer(item.value(), layer);
  }
}

std::vector<Use> uses(const torch::nn::Module& module) {
  std::vector<Use> all;
  const Layer* before = nullptr;
  for (const auto& parameter : module.parameters()) {
    const auto layer = layer_of(parameter);
    if (!layer || layer.get() == before) continue;
    before = layer.get();
    auto some = layer->uses();
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return all;
}

}  // namespace trireme::operators
