// PipeDream (Narayanan et al., 2019): asynchronous 1F1B. S stages; micro-batches come in a stream without end.
// After the forward of micro-batch i, stage s runs the backward of micro-batch i − (S − 1 − s) and updates its weights
// at once. The forward of i so sees the updates of all micro-batches before i − (S − 1 − s), and its backward must use
// the weights of its forward: the executor keeps them.
// Time: no bubble but the start, S − 1 forwards, and the end, S − 1 backwards, of the whole stream.
// Memory: stage s holds at most S − s micro-batches, and as many versions of its weights.
#include <algorithm>

#include "trireme/mesh/schedules/kinds.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {
namespace {

void finish(std::vector<Action>& computed, int micro_batch) {
  if (micro_batch < 0) return;
  computed.push_back(backward_of(micro_batch));
  computed.push_back(update_of(micro_batch));
}

}  // namespace

std::vector<Action> step_of_stream(int stages, int stage, int first_micro_batch, int micro_batches) {
  std::vector<Action> computed;
  for (int i = first_micro_batch; i < first_micro_batch + micro_batches; ++i) {
    computed.push_back(forward_of(i));
    finish(computed, i - (stages - 1 - stage));
  }
  return with_messages(computed, stages, stage, 1);
}

std::vector<Action> drain_of_stream(int stages, int stage, int forwards_done) {
  std::vector<Action> computed;
  for (int i = std::max(0, forwards_done - (stages - 1 - stage)); i < forwards_done; ++i) finish(computed, i);
  return with_messages(computed, stages, stage, 1);
}

Schedule make_pipedream(int stages, int micro_batches, int) {
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    auto actions = step_of_stream(stages, stage, 0, micro_batches);
    auto rest = drain_of_stream(stages, stage, micro_batches);
    actions.insert(actions.end(), rest.begin(), rest.end());
    schedule.actions.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace trireme::pipelines
