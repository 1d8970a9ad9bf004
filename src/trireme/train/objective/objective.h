// What a run makes small and how it is judged: a loss and metrics, chosen for the data.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/dataset.h"
#include "trireme/train/objective/loss.h"
#include "trireme/train/objective/metric.h"

namespace trireme::train {

struct JudgedBy {
  const MetricKind* kind = nullptr;
  std::shared_ptr<const Metric> metric;
  bool asked = true;  // not: in files only
};

struct Objective {
  std::shared_ptr<const Loss> loss;  // shared: learners on several threads use it
  std::string loss_text;             // "cross-entropy:smoothing=0"
  data::Targets targets = data::Targets::classes;
  std::vector<JudgedBy> metrics;  // the first decides which checkpoint is the best

  const MetricKind& first() const { return *metrics.front().kind; }
  // The first, where it can be told while training; else null.
  const Metric* while_training() const;

  std::size_t sums() const;  // of all metrics
  void add(const torch::Tensor& output, const torch::Tensor& target, std::span<double> sums) const;
  void add_in_parts(const TensorParallel& layers, const torch::Tensor& output, const torch::Tensor& target,
                    std::span<double> sums) const;
  std::vector<double> values(std::span<const double> sums) const;
};

// What the texts of --loss and --metric say, before the data is known. Throws ConfigError for what cannot be.
void check_objective(std::string_view loss, std::string_view metric, double target);
// What the data must hold for this loss.
data::Targets targets_for(std::string_view loss);
// For data of this shape, called `name` in errors. Where accuracy means something it is among the metrics, asked for or
// not. Throws ConfigError where loss, metrics and data do not go together.
Objective make_objective(std::string_view loss, std::string_view metric, const data::Shape& shape,
                         std::string_view name);

}  // namespace trireme::train
