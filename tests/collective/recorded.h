// A call's schedules written out, so that tests can look at every step and break some.
#pragma once
#include <cstddef>
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme::test {

struct Recorded {
  Algorithm algorithm;
  Call call;
  std::vector<std::vector<Round>> rounds;  // by rank, then round
  std::vector<std::size_t> scratch, stage;

  std::vector<Schedule> schedules() const {
    std::vector<Schedule> all;
    for (std::size_t rank = 0; rank < rounds.size(); ++rank) {
      Schedule one;
      one.rounds = static_cast<int>(rounds[rank].size());
      one.scratch = scratch[rank];
      one.stage = stage[rank];
      one.fill = [mine = rounds[rank]](int k, Round& out) { out.insert(out.end(), mine[k].begin(), mine[k].end()); };
      all.push_back(one);
    }
    return all;
  }
};

inline Recorded record(const Algorithm& algorithm, const Call& call) {
  Recorded made{algorithm, call, {}, {}, {}};
  Call mine = call;
  for (mine.rank = 0; mine.rank < call.ranks; ++mine.rank) {
    const Schedule schedule = algorithm.plan(mine);
    made.scratch.push_back(schedule.scratch);
    made.stage.push_back(schedule.stage);
    made.rounds.emplace_back();
    for (int k = 0; k < schedule.rounds; ++k) made.rounds.back().push_back(schedule.round(k));
  }
  return made;
}

inline bool is_local(const Step& step) { return step.kind <= StepKind::combine; }
inline bool is_receive(const Step& step) { return step.kind == StepKind::recv || step.kind == StepKind::recv_reduce; }

}  // namespace trireme::test
