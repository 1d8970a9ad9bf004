// What a strategy is, as data: part of its row (strategies.h), read by the training loop, the planner,
// the help and the tests. Whoever wants to know how strategies differ asks here, never for a name.
#pragma once
#include <cstdint>

namespace trireme::sync {

struct Traits {
  enum class Moves : std::uint8_t { nothing, gradients, models };
  Moves moves = Moves::models;   // what workers send each other
  bool in_backward = false;      // Strategy::exchange() exchanges gradients, bucket by bucket, while backward runs
  bool uses_weights = true;      // works on a replica's weights, which are then laid out flat in memory it can reach
  bool uses_gradient = false;    // after_backward() reads or changes the gradient, which then lies flat as well
  bool shares_gradient = false;  // gradients are scaled so that their sum over all workers is the mean over the global
                                 // batch; else each is the mean over the worker's own batch
  bool owns_step = false;        // weights move by somebody else's hand: the optimizer here has nothing to do
  bool own_pace = false;         // workers take batches from a common counter, each at its own pace
  bool apart = true;             // between steps workers' weights and optimizers differ from each other
  bool shares_memory = false;    // the weights are one memory for all workers, who must be threads
  bool repeatable = true;        // two runs with the same seed take the same steps
  int learners = 1;              // replicas that a worker trains with; 0: a number to be found by watching throughput
};

}  // namespace trireme::sync
