// How good a model is on data it did not learn from; the workers share the samples.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/data/dataset.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

struct Evaluation {
  double loss = 0;
  std::vector<double> metrics = {};  // as the objective has them
  std::int64_t samples = 0;
};

// Samples of each class, and how many of them were told right; this worker's.
struct ByClass {
  std::vector<std::int64_t> correct, of;
};

// The mean loss of a batch, and what it adds to the sums of the metrics. Nothing where somebody else tells.
using Judge = std::function<std::optional<double>(const data::Batch& batch, std::span<double> sums)>;
// Sums over samples first … last − 1, in batches: loss, samples, and those of the metrics. Without gradients.
struct Tally {
  std::vector<double> sums;
  std::span<double> of_metrics() { return std::span(sums).subspan(2); }
  Evaluation evaluation(const Objective& objective) const;
};
Tally judge(const Objective& objective, const data::Dataset& set, std::int64_t first, std::int64_t last,
            const Judge& one_batch);

// In evaluation mode, without gradients; the model is in training mode again afterwards. Collective over `world`; alone
// where it is null. `by_class` is filled where it is not null.
Evaluation evaluate(models::Model& model, const Objective& objective, const data::Dataset& set, torch::Device device,
                    Communicator* world = nullptr, ByClass* by_class = nullptr);

}  // namespace trireme::train
