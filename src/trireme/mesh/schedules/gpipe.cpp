// GPipe (Huang et al., 2019). S stages, M micro-batches.
// Every stage runs the forwards of all micro-batches in turn, then their backwards in turn.
// Time (M + S − 1)(f + b) where a stage's forward takes f and its backward b; a share (S − 1)/(M + S − 1) is bubble.
// Memory: the activations of all M micro-batches.
#include "trireme/mesh/schedules/kinds.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {

Schedule make_gpipe(int stages, int micro_batches, int) {
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Action> computed;
    for (int m = 0; m < micro_batches; ++m) computed.push_back(forward_of(m));
    for (int m = 0; m < micro_batches; ++m) computed.push_back(backward_of(m));
    schedule.actions.push_back(with_messages(computed, stages, stage, 1));
  }
  return schedule;
}

int held_by_gpipe(int, int micro_batches, int, int) { return micro_batches; }

}  // namespace trireme::pipelines
