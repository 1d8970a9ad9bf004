#include "trireme/train/objective/loss.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/registry.h"
#include "trireme/parallel/tensor/tensor_parallel.h"
#include "trireme/train/objective/loss_choice.h"

namespace trireme::train {
namespace {

using torch::Tensor;

// − Σ q·log softmax(output), the mean over samples or symbols; q is 1 − s at the target, and s / classes at each class.
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(double smoothing) : smoothing_(smoothing) {}
  Tensor operator()(const Tensor& output, const Tensor& target) const override {
    const auto scores = output.dim() == 3 ? output.flatten(0, 1) : output;
    return torch::cross_entropy_loss(scores, target.flatten(), {}, at::Reduction::Mean, /*ignore_index=*/-100,
                                     smoothing_);
  }
  Tensor in_parts(const TensorParallel& layers, const Tensor& output, const Tensor& target) const override {
    return layers.loss(output, target, smoothing_);
  }
  double chance(std::int64_t outputs) const override { return std::log(static_cast<double>(outputs)); }

 private:
  const double smoothing_;
};

// Means over samples, and over the numbers of each.
class SquaredError final : public Loss {
 public:
  Tensor operator()(const Tensor& output, const Tensor& target) const override {
    return torch::mse_loss(as_target(output, target), target);
  }
};

class AbsoluteError final : public Loss {
 public:
  Tensor operator()(const Tensor& output, const Tensor& target) const override {
    return torch::l1_loss(as_target(output, target), target);
  }
};

// − y·log σ(output) − (1 − y)·log(1 − σ(output)).
class BinaryCrossEntropy final : public Loss {
 public:
  Tensor operator()(const Tensor& output, const Tensor& target) const override {
    return torch::binary_cross_entropy_with_logits(as_target(output, target), target);
  }
  double chance(std::int64_t) const override { return std::log(2.0); }
};

template <typename Kind>
std::shared_ptr<const Loss> plain(const Values&) {
  return std::make_shared<Kind>();
}

}  // namespace

Tensor Loss::in_parts(const TensorParallel& layers, const Tensor& output, const Tensor& target) const {
  return (*this)(layers.whole(output), layers.all_targets(target));
}

namespace {

Registry<LossKind>& loss_registry() {
  using data::Targets;
  static const std::vector<LossKind> built_in{
      {.name = "cross-entropy",
       .summary = "of classes, or of the next symbol of a text",
       .settings = {{"smoothing", "0", "share of each target that is spread over all classes", number(0, 1)}},
       .targets = Targets::classes,
       .metric = "accuracy",
       .make = [](const Values& values) { return std::make_shared<CrossEntropy>(values.number("smoothing")); }},
      {.name = "mse",
       .summary = "mean squared error of numbers",
       .settings = {},
       .targets = Targets::values,
       .metric = "mse",
       .make = plain<SquaredError>},
      {.name = "mae",
       .summary = "mean absolute error of numbers",
       .settings = {},
       .targets = Targets::values,
       .metric = "mae",
       .make = plain<AbsoluteError>},
      {.name = "bce",
       .summary = "binary cross-entropy of targets that are 0 or 1; outputs are logits",
       .settings = {},
       .targets = Targets::zero_one,
       .metric = "accuracy",
       .make = plain<BinaryCrossEntropy>},
  };
  static Registry<LossKind> all("loss", built_in);
  return all;
}

}  // namespace

const std::vector<LossKind>& losses() { return loss_registry().all(); }
void add_loss(LossKind kind) { loss_registry().add(std::move(kind)); }

LossChoice LossChoice::parse(std::string_view text) {
  const auto [name, given] = split_choice(text);
  const auto& kind = find_kind("loss", losses(), name);
  return {&kind, Values(fmt::format("loss {}", kind.name), kind.settings, given)};
}

std::optional<LossChoice> chosen_loss(std::string_view text) {
  if (text == "auto") return std::nullopt;
  return LossChoice::parse(text);
}

Tensor as_target(const Tensor& output, const Tensor& target) {
  if (output.sizes() == target.sizes()) return output;
  if (output.numel() == target.numel() && output.size(0) == target.size(0)) return output.reshape(target.sizes());
  throw ConfigError(fmt::format("the model gives [{}] for targets of [{}]; it must give one number for each",
                                fmt::join(output.sizes(), ", "), fmt::join(target.sizes(), ", ")));
}

}  // namespace trireme::train
