// What strategies must know of a LibTorch optimizer: whether their pace applies to it, and what servers do in its
// place.
#pragma once
#include <torch/torch.h>

#include <optional>
#include <string>

#include "trireme/optim/optimizers.h"
#include "trireme/ps/server/update.h"

namespace trireme::train {

struct TorchStepping {
  std::string name;                            // "SGD"; of a class that is not LibTorch's: "this optimizer"
  const optim::OptimizerKind* kind = nullptr;  // ours of the same formula; none for such a class
  optim::Options options = {};                 // of its first group of parameters
  bool groups_differ = false;                  // in their options or rates

  // Whether it is sgd, with or without momentum.
  bool linear() const { return kind && kind->linear; }
  // The same by a server, for all parameters alike; none where servers have no such update.
  std::optional<ps::UpdateSpec> update() const;
};

// Throws ConfigError for LBFGS, whose steps call the loss again.
TorchStepping stepping_of(torch::optim::Optimizer& optimizer);

// Of its first group of parameters.
double rate_of(torch::optim::Optimizer& optimizer);
// Every group's rate times `factor`.
void scale_rates(torch::optim::Optimizer& optimizer, double factor);
// Of sgd, in every group.
void set_momentum(torch::optim::Optimizer& optimizer, double momentum, bool nesterov);

}  // namespace trireme::train
