// How a loss is chosen: NAME[:key=value,…].
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "trireme/train/objective/loss.h"

namespace trireme::train {

struct LossChoice {
  const LossKind* kind = nullptr;
  Values values;
  // Throws ConfigError that lists the valid names, settings or values.
  static LossChoice parse(std::string_view text);
  // "cross-entropy:smoothing=0.1", with every setting.
  std::string text() const { return kind->name + values.text(); }
};

// "auto": nothing, as the data decides; else as LossChoice::parse.
std::optional<LossChoice> chosen_loss(std::string_view text);

// The output in the shape of the target: of one number per sample [n] and [n, 1] are the same. Throws ConfigError where
// they are not as many numbers.
torch::Tensor as_target(const torch::Tensor& output, const torch::Tensor& target);

}  // namespace trireme::train
