// What a model is trained to make small: the list of losses, and how one is chosen: NAME[:key=value,…].
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/settings.h"
#include "trireme/data/open.h"

namespace trireme {
class TensorParallel;
}

namespace trireme::train {

// Stateless; called by several learners at once.
class Loss {
 public:
  virtual ~Loss() = default;
  // The mean over the samples, a scalar with a gradient: means of the parts of a batch, weighted by their samples, must
  // be the mean of the batch. `output` is what the model gave, `target` as in data::Batch.
  virtual torch::Tensor operator()(const torch::Tensor& output, const torch::Tensor& target) const = 0;
  // The same where the last layer is split over workers. Here the outputs are gathered first. Collective.
  virtual torch::Tensor in_parts(const TensorParallel& layers, const torch::Tensor& output,
                                 const torch::Tensor& target) const;
  // What it is for one who knows nothing but the number of outputs; 0: that cannot be told.
  virtual double chance(std::int64_t /*outputs*/) const { return 0; }
};

struct LossKind {
  std::string name;
  std::string summary;  // one line
  std::vector<Setting> settings;
  data::Targets targets = data::Targets::classes;  // what it is of: classes, values or zero_one
  std::string metric = "accuracy";                 // that judges by default
  std::function<std::shared_ptr<const Loss>(const Values& values)> make;
};

// All of them, in the order of the documentation.
const std::vector<LossKind>& losses();
// One more, before any is chosen. Throws ConfigError for a name that is taken.
void add_loss(LossKind kind);

}  // namespace trireme::train
