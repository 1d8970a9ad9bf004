// ZB-H1 (Qi et al., Zero Bubble Pipeline Parallelism, 2023). S stages, M micro-batches.
// A backward is cut in two: the gradient of the inputs, which the stage before waits for, and that of the weights,
// which nobody does. 1F1B of forwards and input gradients; stage s puts the weight gradient of a micro-batch off until
// s more backwards are done, and those that are left fill the end, where 1F1B has its bubble. With f = b = w the time
// is 3M + S − 1 in units of f: the bubble, (S − 1)/(3M + S − 1), is a third of 1F1B's. Memory: every stage holds at
// most S micro-batches, what 1F1B's first stage does.
#include <algorithm>

#include "trireme/mesh/schedules/kinds.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {

Schedule make_zero_bubble(int stages, int micro_batches, int) {
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    int warm_up = stages - 1 - stage, put_off = stage;
    std::vector<Action> computed;
    for (int i = 0; i < micro_batches + warm_up + put_off; ++i) {
      int backward = i - warm_up, weights = backward - put_off;
      if (i < micro_batches) computed.push_back(forward_of(i));
      if (backward >= 0 && backward < micro_batches) computed.push_back(backward_of(backward));
      if (weights >= 0) computed.push_back(weights_of(weights));
    }
    schedule.actions.push_back(with_messages(computed, stages, stage, 1));
  }
  return schedule;
}

int held_by_zero_bubble(int stages, int micro_batches, int, int) { return std::min(micro_batches, stages); }

std::optional<double> bubble_of_zero_bubble(int stages, int micro_batches, int) {
  if (micro_batches < stages) return std::nullopt;  // too few weight gradients to fill the end with
  return (stages - 1.0) / (3.0 * micro_batches + stages - 1.0);
}

}  // namespace trireme::pipelines
