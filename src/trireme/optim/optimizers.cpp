#include "trireme/optim/optimizers.h"

#include <algorithm>

#include "trireme/base/registry.h"

namespace trireme::optim {
namespace {

Registry<OptimizerKind>& registry() {
  static Registry<OptimizerKind> all("optimizer", {kSgd, kAdam, kAdamW, kLars, kLamb});
  return all;
}

}  // namespace

std::span<const OptimizerKind> optimizers() { return registry().all(); }
void add_optimizer(const OptimizerKind& kind) { registry().add(kind); }

const OptimizerKind* find_optimizer(std::string_view name) {
  const auto found = std::ranges::find(optimizers(), name, &OptimizerKind::name);
  return found == optimizers().end() ? nullptr : &*found;
}

}  // namespace trireme::optim
