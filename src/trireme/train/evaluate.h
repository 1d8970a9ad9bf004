// How good a model is on data it did not learn from; the workers share the samples.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trireme/collective/communicator.h"
#include "trireme/data/dataset.h"
#include "trireme/train/config.h"
#include "trireme/train/workload.h"

namespace trireme::train {

struct Evaluation {
  double loss = 0, accuracy = 0;
  std::int64_t samples = 0;
};

// Samples of each class, and how many of them were told right; this worker's.
struct ByClass {
  std::vector<std::int64_t> correct, of;
};

// What a batch gave: the mean loss, and its score. Nothing where somebody else tells.
struct Verdict {
  double loss = 0;
  Score score;
};
using Judge = std::function<std::optional<Verdict>(const data::Batch& batch)>;
// Sums over samples first … last − 1, in batches: loss, correct, of how many, samples. Without gradients.
struct Tally {
  std::array<double, 4> sums{};
  Evaluation evaluation() const;
};
Tally judge(const data::Dataset& set, std::int64_t first, std::int64_t last, const Judge& one_batch);

// In evaluation mode, without gradients; the model is in training mode again afterwards. Collective over `world`; alone
// where it is null. `by_class` is filled where it is not null.
Evaluation evaluate(models::Model& model, const data::Dataset& set, torch::Device device, Communicator* world = nullptr,
                    ByClass* by_class = nullptr);

}  // namespace trireme::train
