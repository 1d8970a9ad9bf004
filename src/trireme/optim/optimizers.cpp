#include "trireme/optim/optimizers.h"

#include <algorithm>
#include <array>

namespace trireme::optim {
namespace {

constexpr std::array kAll{kSgd, kAdam, kAdamW, kLars, kLamb};

}  // namespace

std::span<const Kind> optimizers() { return kAll; }

const Kind* find_optimizer(std::string_view name) {
  const auto* found = std::ranges::find(kAll, name, &Kind::name);
  return found == kAll.end() ? nullptr : found;
}

}  // namespace trireme::optim
