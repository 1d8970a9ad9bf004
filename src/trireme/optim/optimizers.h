// The optimizers, as data: what each takes, and how its step depends on the gradient. The trainer's are made in
// train/optimizers/optimizer.cpp, a parameter server's in ps/server/update.cpp. Whoever wants to know how optimizers
// differ asks here, never for a name.
#pragma once
#include <span>
#include <string_view>

#include "trireme/optim/optimizer_kind.h"

namespace trireme::optim {

inline constexpr OptimizerKind kSgd{.name = "sgd",
                                    .summary = "gradient descent with momentum or Nesterov's momentum",
                                    .momentum = true,
                                    .linear = true,
                                    .by_element = true};
inline constexpr OptimizerKind kAdam{.name = "adam",
                                     .summary = "steps scaled by running means of the gradient and its square",
                                     .moments = true,
                                     .by_element = true,
                                     .lr = 1e-3};
inline constexpr OptimizerKind kAdamW{.name = "adamw",
                                      .summary = "Adam with weight decay apart from the gradient",
                                      .moments = true,
                                      .by_element = true,
                                      .lr = 1e-3};
inline constexpr OptimizerKind kLars{
    .name = "lars",
    .summary = "momentum with a rate per layer, for convolutional networks in large batches",
    .momentum = true,
    .trust = true,
    .lr = 10};
inline constexpr OptimizerKind kLamb{.name = "lamb",
                                     .summary = "Adam with a rate per layer, for transformers in large batches",
                                     .moments = true,
                                     .lr = 1e-2};

// All of them, in the order of the documentation.
std::span<const OptimizerKind> optimizers();
// One more, before any is chosen; what makes it is train/optimizers/optimizer.h's. Throws ConfigError for a name that
// is taken.
void add_optimizer(const OptimizerKind& kind);
// Null where there is none of this name.
const OptimizerKind* find_optimizer(std::string_view name);
// Whether there is one of this name that has a trait: is(&OptimizerKind::linear, config.optimizer).
inline bool is(bool OptimizerKind::*trait, std::string_view name) {
  const OptimizerKind* kind = find_optimizer(name);
  return kind != nullptr && kind->*trait;
}

}  // namespace trireme::optim
