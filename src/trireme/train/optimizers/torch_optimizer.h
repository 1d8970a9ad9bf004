// What strategies must know of a LibTorch optimizer: whether their pace applies to it, and what servers do in its
// place.
#pragma once
#include <torch/torch.h>

#include <optional>
#include <string>

#include "trireme/ps/server/update.h"

namespace trireme::train {

struct TorchStepping {
  std::string name;       // "SGD"; of a class that is not LibTorch's: "this optimizer"
  bool sgd = false;       // plain, with momentum or with Nesterov's
  double momentum = 0;    // of sgd
  bool nesterov = false;  // of sgd
  // The same by a server, for all parameters alike; none where servers have no such update.
  std::optional<ps::UpdateSpec> update;
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
