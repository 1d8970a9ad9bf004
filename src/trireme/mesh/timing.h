// When a schedule's actions begin and end, for given costs: all its stages are played through, action by action.
//
// A stage does one thing at a time. A message leaves when its send is reached and takes its transfer's seconds on the
// wire from that stage to the other, one message after another; stages compute meanwhile.
#pragma once
#include <vector>

#include "trireme/mesh/schedule.h"

namespace trireme::pipelines {

// Seconds for one micro-batch, by part; an empty list is all zeros. `backward` is of inputs and weights; where the
// schedule splits it, of inputs alone, and `weights` the rest.
struct Costs {
  std::vector<double> forward, backward, weights;
  std::vector<double> activation, gradient;  // to send the part's output on, and the gradient of its input back
  std::vector<double> update;
};
// The same for all parts of a model whose whole forward takes stages · `forward` and whose backward stages ·
// `backward`: a stage takes `forward` however many chunks it has. A backward that is split is cut in halves.
Costs equal_costs(const Schedule& schedule, double forward, double backward);

struct Timed {
  Action action;
  double begin_s = 0, end_s = 0;  // a receive's are when it began to wait and when it was there
};

struct Timing {
  std::vector<std::vector<Timed>> actions;  // by stage, as in the schedule
  double makespan_s = 0;
  std::vector<double> busy_s, idle_s;  // by stage; they add up to the makespan
  double first_latency_s = 0;          // from the first forward of micro-batch 0 to the end of its last backward
  double bubble = 0;                   // 1 − Σ busy / (stages · makespan)
};
// The schedule must be free of faults; throws ConfigError where one waits for ever or costs are not one for each part.
Timing time_of(const Schedule& schedule, const Costs& costs);

}  // namespace trireme::pipelines
