#include "trireme/train/learner/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "trireme/base/error.h"
#include "trireme/grad/parameters.h"
#include "trireme/models/model.h"

namespace trireme::train {
namespace {

const void* identity(const torch::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

// In how many pieces of the model, and under how many names, each parameter is used.
std::map<const void*, int> uses_of(models::Model& model) {
  std::map<const void*, int> in_pieces, names;
  for (const auto& piece : model.chain()) {
    std::set<const void*> here;
    for (const auto& tensor : piece.parameters) here.insert(identity(tensor));
    for (const auto& module : piece.modules) {
      for (const auto& tensor : module->parameters()) here.insert(identity(tensor));
    }
    for (const auto* tensor : here) ++in_pieces[tensor];
  }
  for (const auto& item : model.named_parameters()) ++names[identity(item.value())];
  for (const auto& [tensor, count] : names) in_pieces[tensor] = std::max(in_pieces[tensor], count);
  return in_pieces;
}

}  // namespace

Tables tables_of(torch::nn::Module& model) {
  Tables tables;
  auto* const known = dynamic_cast<models::Model*>(&model);
  std::set<const void*> embeddings;
  if (known) {
    for (const auto& weight : known->embeddings()) embeddings.insert(identity(weight));
  }
  if (!embeddings.empty()) {
    const auto uses = uses_of(*known);
    for (const auto& [name, parameter] : grad::learning(model)) {
      const auto* tensor = identity(parameter);
      if (embeddings.erase(tensor) == 0) continue;
      (uses.at(tensor) > 1 ? tables.whole : tables.by_rows).push_back(name);
    }
  }
  if (!tables.by_rows.empty()) return tables;
  if (tables.whole.empty()) throw ConfigError("--sparse: the model has no embedding that learns; leave it out");
  throw ConfigError(
      fmt::format("--sparse: {} is used for the scores as well and gets a gradient in every row; untie it, as lstm-lm "
                  "and gpt-small "
                  "do with --model-arg tied=false, or leave out --sparse",
                  fmt::join(tables.whole, ", ")));
}

std::string describe(const Tables& tables) {
  auto text = fmt::format("pushes of {} the rows that were touched", fmt::join(tables.by_rows, ", "));
  if (!tables.whole.empty()) text += fmt::format(", {} whole (used elsewhere, too)", fmt::join(tables.whole, ", "));
  return text;
}

}  // namespace trireme::train
