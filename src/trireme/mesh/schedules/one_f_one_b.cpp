// 1F1B with a flush (Narayanan et al., PipeDream-2BW and Megatron-LM, 2021). S stages, M micro-batches.
// Stage s warms up with the forwards of S − 1 − s micro-batches; then one forward and one backward take turns; at last
// come the backwards that are left. Time and bubble are GPipe's, (S − 1)/(M + S − 1).
// Memory: stage s holds at most S − s micro-batches, however many there are.
#include <algorithm>

#include "trireme/mesh/schedules/kinds.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {

Schedule make_one_f_one_b(int stages, int micro_batches, int) {
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    int warm_up = stages - 1 - stage;
    std::vector<Action> computed;
    for (int i = 0; i < micro_batches + warm_up; ++i) {
      if (i < micro_batches) computed.push_back(forward_of(i));
      if (i >= warm_up) computed.push_back(backward_of(i - warm_up));
    }
    schedule.actions.push_back(with_messages(computed, stages, stage, 1));
  }
  return schedule;
}

int held_by_one_f_one_b(int stages, int micro_batches, int, int stage) {
  return std::min(micro_batches, stages - stage);
}

std::optional<double> bubble_of_one_f_one_b(int stages, int micro_batches, int) {
  return (stages - 1.0) / (micro_batches + stages - 1.0);
}

}  // namespace trireme::pipelines
