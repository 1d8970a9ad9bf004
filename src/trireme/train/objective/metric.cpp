#include "trireme/train/objective/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/registry.h"
#include "trireme/base/settings.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"
#include "trireme/parallel/tensor/tensor_parallel.h"
#include "trireme/train/objective/loss.h"
#include "trireme/train/objective/loss_choice.h"

namespace trireme::train {
namespace {

using data::Targets;
using torch::Tensor;
using Sums = std::span<double>;

double total(const Tensor& values) { return values.sum(torch::kFloat64).item<double>(); }

// One row per sample or symbol.
Tensor rows_of(const Tensor& output) { return output.reshape({-1, output.size(-1)}); }

// The share of classes that have the greatest score. Sums: right ones, targets.
class Accuracy final : public Metric {
 public:
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    sums[0] += total(output.argmax(-1).eq(target));
    sums[1] += static_cast<double>(target.numel());
  }
  void add_in_parts(const TensorParallel& layers, const Tensor& output, const Tensor& target,
                    Sums sums) const override {
    sums[0] += static_cast<double>(layers.correct(output, target));
    sums[1] += static_cast<double>(layers.all_targets(target).numel());
  }
};

// The share of targets, each 0 or 1, that the sign of the output tells.
class BinaryAccuracy final : public Metric {
 public:
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    sums[0] += total(as_target(output, target).gt(0).eq(target.gt(0.5)));
    sums[1] += static_cast<double>(target.numel());
  }
};

// The share that another one misses.
class Missed final : public Metric {
 public:
  explicit Missed(std::shared_ptr<const Metric> hits) : hits_(std::move(hits)) {}
  void add(const Tensor& output, const Tensor& target, Sums sums) const override { hits_->add(output, target, sums); }
  void add_in_parts(const TensorParallel& layers, const Tensor& output, const Tensor& target,
                    Sums sums) const override {
    hits_->add_in_parts(layers, output, target, sums);
  }
  double value(std::span<const double> sums) const override { return sums[1] > 0 ? 1 - hits_->value(sums) : 0; }

 private:
  const std::shared_ptr<const Metric> hits_;
};

// The share of classes that are among the greatest scores.
class AmongFirst final : public Metric {
 public:
  explicit AmongFirst(std::int64_t most) : most_(most) {}
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    const auto first = std::get<1>(rows_of(output).topk(most_, -1));
    sums[0] += total(first.eq(target.reshape({-1, 1})));
    sums[1] += static_cast<double>(target.numel());
  }

 private:
  const std::int64_t most_;
};

// e to the mean cross entropy, without smoothing. Sums: of − log p(target), targets.
class Perplexity final : public Metric {
 public:
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    sums[0] += total(torch::cross_entropy_loss(rows_of(output), target.flatten(), {}, at::Reduction::None));
    sums[1] += static_cast<double>(target.numel());
  }
  double value(std::span<const double> sums) const override { return std::exp(Metric::value(sums)); }
};

Tensor differences(const Tensor& output, const Tensor& target) {
  return as_target(output, target).to(torch::kFloat64) - target.to(torch::kFloat64);
}

class MeanSquares final : public Metric {
 public:
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    sums[0] += total(differences(output, target).square());
    sums[1] += static_cast<double>(target.numel());
  }
};

class MeanDistances final : public Metric {
 public:
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    sums[0] += total(differences(output, target).abs());
    sums[1] += static_cast<double>(target.numel());
  }
};

// 1 − Σ(y − ŷ)² / Σ(y − mean y)² of each output, the mean over outputs; outputs whose targets are all the same are left
// out. Sums: samples, and of each output (y − ŷ)², y and y².
class Determination final : public Metric {
 public:
  explicit Determination(std::int64_t outputs) : outputs_(static_cast<std::size_t>(outputs)) {}
  std::size_t sums() const override { return 1 + 3 * outputs_; }
  void add(const Tensor& output, const Tensor& target, Sums sums) const override {
    const auto y = target.reshape({target.size(0), -1}).to(torch::kFloat64);
    const auto squares = differences(output, target).reshape(y.sizes()).square();
    const auto all = torch::cat({squares.sum(0), y.sum(0), y.square().sum(0)}).to(torch::kCPU);
    sums[0] += static_cast<double>(y.size(0));
    for (std::size_t i = 0; i < 3 * outputs_; ++i) sums[1 + i] += all[static_cast<std::int64_t>(i)].item<double>();
  }
  double value(std::span<const double> sums) const override {
    double sum = 0, counted = 0;
    for (std::size_t k = 0; k < outputs_; ++k) {
      const double missed = sums[1 + k], mean = sums[1 + outputs_ + k] / std::max(sums[0], 1.0);
      const double spread = sums[1 + 2 * outputs_ + k] - mean * sums[1 + outputs_ + k];
      if (!(spread > 1e-12 * sums[1 + 2 * outputs_ + k])) continue;
      sum += 1 - missed / spread;
      ++counted;
    }
    return counted > 0 ? sum / counted : 0;
  }

 private:
  const std::size_t outputs_;
};

std::shared_ptr<const Metric> accuracy_for(Targets targets, std::int64_t) {
  if (targets == Targets::zero_one) return std::make_shared<BinaryAccuracy>();
  return std::make_shared<Accuracy>();
}

std::shared_ptr<const Metric> first_five(Targets, std::int64_t outputs) {
  constexpr std::int64_t kFirst = 5;
  if (outputs <= kFirst) {
    throw ConfigError(fmt::format("--metric top-5: any of {} classes is among the first 5; leave it out", outputs));
  }
  return std::make_shared<AmongFirst>(kFirst);
}

template <typename Kind>
std::shared_ptr<const Metric> plain_metric(Targets, std::int64_t) {
  return std::make_shared<Kind>();
}

}  // namespace

void Metric::add_in_parts(const TensorParallel& layers, const Tensor& output, const Tensor& target,
                          std::span<double> sums) const {
  add(layers.whole(output), layers.all_targets(target), sums);
}

double Metric::value(std::span<const double> sums) const { return sums[1] > 0 ? sums[0] / sums[1] : 0; }

bool MetricKind::judges(Targets what) const { return std::ranges::find(targets, what) != targets.end(); }

std::string MetricKind::text(double value) const {
  if (share) return per_cent(value);
  const bool small = value != 0 && std::abs(value) < 0.01;
  return small ? fmt::format("{:.3g}", value) : loss_text(value);
}

namespace {

Registry<MetricKind>& metric_registry() {
  static const std::vector<MetricKind> built_in{
      {.name = "accuracy",
       .key = "accuracy",
       .title = "accuracy",
       .summary = "share of samples, or symbols, that are told right (top-1)",
       .share = true,
       .targets = {Targets::classes, Targets::zero_one},
       .make = accuracy_for},
      {.name = "top-5",
       .key = "top5",
       .title = "top-5 accuracy",
       .summary = "share whose class is among the five likeliest",
       .share = true,
       .targets = {Targets::classes},
       .make = first_five},
      {.name = "error",
       .key = "error",
       .title = "error",
       .summary = "share that is told wrong: 1 - accuracy",
       .higher_is_better = false,
       .share = true,
       .targets = {Targets::classes, Targets::zero_one},
       .make = [](Targets targets,
                  std::int64_t outputs) { return std::make_shared<Missed>(accuracy_for(targets, outputs)); }},
      {.name = "perplexity",
       .key = "perplexity",
       .title = "perplexity",
       .summary = "e to the mean cross entropy",
       .higher_is_better = false,
       .targets = {Targets::classes},
       .make = plain_metric<Perplexity>},
      {.name = "mse",
       .key = "mse",
       .title = "mse",
       .summary = "mean squared error",
       .higher_is_better = false,
       .targets = {Targets::values},
       .make = plain_metric<MeanSquares>},
      {.name = "mae",
       .key = "mae",
       .title = "mae",
       .summary = "mean absolute error",
       .higher_is_better = false,
       .targets = {Targets::values},
       .make = plain_metric<MeanDistances>},
      {.name = "r2",
       .key = "r2",
       .title = "r2",
       .summary = "coefficient of determination, the mean over outputs",
       .targets = {Targets::values},
       .make = [](Targets, std::int64_t outputs) { return std::make_shared<Determination>(outputs); }},
  };
  static Registry<MetricKind> all("metric", built_in);
  return all;
}

}  // namespace

const std::vector<MetricKind>& metrics() { return metric_registry().all(); }
void add_metric(MetricKind kind) { metric_registry().add(std::move(kind)); }

std::vector<const MetricKind*> chosen_metrics(std::string_view text) {
  std::vector<const MetricKind*> chosen;
  if (text == "auto") return chosen;
  for (const auto name : split(text, ',')) {
    const auto& kind = find_kind("metric", metrics(), name == "top-1" ? "accuracy" : name);
    if (std::ranges::find(chosen, &kind) != chosen.end()) {
      throw ConfigError(fmt::format("--metric {}: {} is given twice", text, kind.name));
    }
    chosen.push_back(&kind);
  }
  return chosen;
}

}  // namespace trireme::train
