// The optimizers, as data: what each takes, how its step depends on the gradient, and what makes it. Whoever wants to
// know how optimizers differ asks here, never for a name.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "trireme/optim/optimizer_kind.h"

namespace trireme::optim {

// All of them, in the order of the documentation.
std::span<const OptimizerKind> optimizers();
// One more, before any is chosen: trainer and servers step by it. Throws ConfigError for a name that is taken.
void add_optimizer(const OptimizerKind& kind);
// Null where there is none of this name.
const OptimizerKind* find_optimizer(std::string_view name);
// Whether there is one of this name that has a trait: is(&OptimizerKind::linear, config.optimizer).
inline bool is(bool OptimizerKind::*trait, std::string_view name) {
  const OptimizerKind* kind = find_optimizer(name);
  return kind != nullptr && kind->*trait;
}
// "sgd, lars or rmsprop": those with a trait.
std::string names_with(bool OptimizerKind::*trait);

// Throws ConfigError that says which value is wrong: "optimizer sgd: momentum must be …".
void check(const OptimizerKind& kind, const Options& options);
// Of a kind that has `make`; checked.
MadeRule make_rule(const OptimizerKind& kind, const Options& options);

}  // namespace trireme::optim
