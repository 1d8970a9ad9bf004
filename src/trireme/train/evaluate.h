// How good a model is on data it did not learn from; the workers share the samples.
#pragma once
#include "trireme/collective/communicator.h"
#include "trireme/data/dataset.h"
#include "trireme/train/config.h"
#include "trireme/train/workload.h"

namespace trireme::train {

struct Evaluation {
  double loss = 0, accuracy = 0;
  std::int64_t samples = 0;
};

// In evaluation mode, without gradients; the model is in training mode again afterwards. Collective over `world`; alone
// where it is null.
Evaluation evaluate(models::Model& model, const data::Dataset& set, torch::Device device,
                    Communicator* world = nullptr);

}  // namespace trireme::train
