// What an optimizer is, as data: what it takes, and how its step depends on the gradient. Read by the trainer,
// parameter servers, codecs and the help: whoever wants to know how optimizers differ asks here, never for a name.
#pragma once
#include <string_view>

namespace trireme::optim {

struct OptimizerKind {
  std::string_view name;
  std::string_view summary;  // one line
  bool momentum = false;     // takes a momentum: keeps a running sum of gradients
  bool moments = false;      // takes beta1, beta2 and epsilon: keeps running means of the gradient and of its square
  bool trust = false;        // takes the share of a layer's norm that a step may move it
  // The step is the gradient times the rate, or the sum that momentum makes of gradients: may look ahead (Nesterov),
  // and a codec may take the place of its momentum.
  bool linear = false;
  // Every element steps by itself, so that any part of a model may be stepped anywhere: at a server, in a shard.
  bool by_element = false;
  double lr = 0.1;  // the rate where none is asked for
};

}  // namespace trireme::optim
