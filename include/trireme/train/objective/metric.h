// How good a model is: the list of metrics. Each is computed from sums over samples, so that it is the same whoever of
// the workers judges which samples.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/open.h"

namespace trireme {
class TensorParallel;
}

namespace trireme::train {

// Stateless; called by several learners at once.
class Metric {
 public:
  virtual ~Metric() = default;
  // How many sums it needs; with two it is also told while training.
  virtual std::size_t sums() const { return 2; }
  // Adds what a batch gives, without gradients; shapes as of a Loss.
  virtual void add(const torch::Tensor& output, const torch::Tensor& target, std::span<double> sums) const = 0;
  // The same where the last layer is split over workers. Here the outputs are gathered first. Collective.
  virtual void add_in_parts(const TensorParallel& layers, const torch::Tensor& output, const torch::Tensor& target,
                            std::span<double> sums) const;
  // Of the sums over everything: here the first over the second.
  virtual double value(std::span<const double> sums) const;
};

struct MetricKind {
  std::string name;     // as asked for: "top-5"
  std::string key;      // in files, behind test_, train_ and best_: "top5"
  std::string title;    // in words: "top-5 accuracy"
  std::string summary;  // one line
  bool higher_is_better = true;
  bool share = false;                  // from 0 to 1, shown as per cent
  std::vector<data::Targets> targets;  // what it judges: classes, values, zero_one
  // For a model with so many outputs. Throws ConfigError where it means nothing for them.
  std::function<std::shared_ptr<const Metric>(data::Targets targets, std::int64_t outputs)> make;

  bool judges(data::Targets what) const;
  bool better(double a, double b) const { return higher_is_better ? a > b : a < b; }
  bool reaches(double value, double target) const { return higher_is_better ? value >= target : value <= target; }
  // "85.20%" or "0.01234"
  std::string text(double value) const;
};

// All of them, in the order of the documentation.
const std::vector<MetricKind>& metrics();
// One more, before any is chosen. Throws ConfigError for a name that is taken.
void add_metric(MetricKind kind);

// "accuracy,top-5": those; "auto": none, as the loss decides. Throws ConfigError that lists the valid names.
std::vector<const MetricKind*> chosen_metrics(std::string_view text);

}  // namespace trireme::train
