// What an optimizer is, as data: what it takes, how its step depends on the gradient, and what makes it. Read by the
// trainer, parameter servers, codecs and the help: whoever wants to know how optimizers differ asks here, never for a
// name.
#pragma once
#include <string_view>

#include "trireme/optim/optimizer.h"

namespace trireme::optim {

struct OptimizerKind {
  std::string_view name;
  std::string_view summary;  // one line
  // What it takes: a momentum (keeps a running sum); beta1 and beta2 (running means of the gradient and of its square);
  // epsilon; alpha and centered (a running mean of the square); lr_decay and initial_accumulator (a sum of squares);
  // the share of a layer's norm that a step may move it.
  bool momentum = false, moments = false, epsilon = false, mean_square = false, accumulates = false, trust = false;
  // The step is the gradient times the rate, or the sum that momentum makes of gradients: may look ahead (Nesterov),
  // and a codec may take the place of its momentum.
  bool linear = false;
  // Every element steps by itself, so that any part of a model may be stepped anywhere: at a server, in a shard.
  bool by_element = false;
  double lr = 0.1, own_momentum = 0.9;  // where none is asked for, of what takes them
  // Null where an optimizer is made of tensors alone (train/optimizers/optimizer.h). Options are checked before.
  MadeRule (*make)(const Options& options) = nullptr;

  // Whether servers can step by it.
  bool on_servers() const { return by_element && make; }
};

}  // namespace trireme::optim
