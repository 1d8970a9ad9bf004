// A data set of tensors that a program has already.
#pragma once
#include <torch/torch.h>

#include <memory>

#include "trireme/data/dataset.h"

namespace trireme::data {

// Samples are the rows of `input`, f32 [n, …], and of `target`: classes, i64 [n], from 0 to `classes` − 1. Both are
// kept, not copied: leave them as they are. Throws DataError where they do not fit.
std::shared_ptr<const Dataset> of_tensors(torch::Tensor input, torch::Tensor target, std::int64_t classes);
// The same with numbers to predict: f32 [n, k].
std::shared_ptr<const Dataset> of_tensors(torch::Tensor input, torch::Tensor target);

}  // namespace trireme::data
