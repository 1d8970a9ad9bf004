#include "trireme/optim/optimizers.h"

#include <algorithm>

#include "trireme/base/registry.h"

namespace trireme::optim {
namespace {

Registry<Kind>& registry() {
  static Registry<Kind> all("optimizer", {kSgd, kAdam, kAdamW, kLars, kLamb});
  return all;
}

}  // namespace

std::span<const Kind> optimizers() { return registry().all(); }
void add_optimizer(const Kind& kind) { registry().add(kind); }

const Kind* find_optimizer(std::string_view name) {
  const auto found = std::ranges::find(optimizers(), name, &Kind::name);
  return found == optimizers().end() ? nullptr : &*found;
}

}  // namespace trireme::optim
