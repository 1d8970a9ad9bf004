#include "trireme/train/objective/objective.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/train/objective/loss_choice.h"

namespace trireme::train {
namespace {

using data::Targets;

void check_judges(const MetricKind& metric, const LossKind& loss) {
  if (metric.judges(loss.targets)) return;
  std::vector<std::string_view> names;
  for (const auto& kind : metrics()) {
    if (kind.judges(loss.targets)) names.push_back(kind.name);
  }
  throw ConfigError(fmt::format("--metric {} does not judge {}, which --loss {} learns; choose {}", metric.name,
                                loss.targets == Targets::classes  ? "classes"
                                : loss.targets == Targets::values ? "numbers"
                                                                  : "targets of 0 and 1",
                                loss.name, listed(names)));
}

// The sums of metric after metric.
template <typename Use>
void each(const std::vector<JudgedBy>& metrics, std::span<double> sums, const Use& use) {
  for (const auto& one : metrics) {
    const auto count = one.metric->sums();
    use(*one.metric, sums.first(count));
    sums = sums.subspan(count);
  }
}

}  // namespace

const Metric* Objective::while_training() const {
  const auto& metric = metrics.front().metric;
  return metric->sums() == 2 ? metric.get() : nullptr;
}

std::size_t Objective::sums() const {
  std::size_t count = 0;
  for (const auto& one : metrics) count += one.metric->sums();
  return count;
}

void Objective::add(const torch::Tensor& output, const torch::Tensor& target, std::span<double> sums) const {
  each(metrics, sums, [&](const Metric& metric, std::span<double> own) { metric.add(output, target, own); });
}

void Objective::add_in_parts(const TensorParallel& layers, const torch::Tensor& output, const torch::Tensor& target,
                             std::span<double> sums) const {
  each(metrics, sums,
       [&](const Metric& metric, std::span<double> own) { metric.add_in_parts(layers, output, target, own); });
}

std::vector<double> Objective::values(std::span<const double> sums) const {
  std::vector<double> values;
  for (const auto& one : metrics) {
    const auto count = one.metric->sums();
    values.push_back(one.metric->value(sums.first(count)));
    sums = sums.subspan(count);
  }
  return values;
}

void check_objective(std::string_view loss, std::string_view metric, double target) {
  const auto of = chosen_loss(loss);
  const auto chosen = chosen_metrics(metric);
  if (of) {
    for (const auto* kind : chosen) check_judges(*kind, *of->kind);
  }
  const auto& first =
      chosen.empty() ? find_kind("metric", metrics(), of ? of->kind->metric : "accuracy") : *chosen.front();
  if (first.share && !(target >= 0 && target <= 1)) {
    throw ConfigError(
        fmt::format("--target: {} is not a share of the test data, from 0 to 1, as {} is", target, first.title));
  }
  if (!(target >= 0)) throw ConfigError(fmt::format("--target: {} is below 0", target));
}

Targets targets_for(std::string_view loss) {
  const auto of = chosen_loss(loss);
  return of ? of->kind->targets : Targets::as_given;
}

Objective make_objective(std::string_view loss, std::string_view metric, const data::Shape& shape,
                         std::string_view name) {
  const auto of = chosen_loss(loss).value_or(LossChoice::parse(shape.values > 0 ? "mse" : "cross-entropy"));
  const bool wants_values = of.kind->targets != Targets::classes;
  if (wants_values != (shape.values > 0)) {
    throw ConfigError(
        wants_values ? fmt::format("--loss {}: {} has {}, and no numbers to predict; leave it out", of.kind->name, name,
                                   shape.text ? "text" : "classes")
                     : fmt::format("--loss {}: {} has numbers to predict, and no classes; choose --loss mse or mae",
                                   of.kind->name, name));
  }
  Objective objective{of.kind->make(of.values), of.text(), of.kind->targets, {}};
  auto chosen = chosen_metrics(metric);
  const auto& usual = find_kind("metric", metrics(), of.kind->metric);
  if (chosen.empty()) chosen.push_back(&usual);
  const auto asked = chosen.size();
  const auto& accuracy = find_kind("metric", metrics(), "accuracy");
  if (accuracy.judges(of.kind->targets) && std::ranges::find(chosen, &accuracy) == chosen.end()) {
    chosen.push_back(&accuracy);
  }
  for (const auto* kind : chosen) {
    check_judges(*kind, *of.kind);
    objective.metrics.push_back(
        {kind, kind->make(of.kind->targets, shape.outputs()), objective.metrics.size() < asked});
  }
  return objective;
}

}  // namespace trireme::train
