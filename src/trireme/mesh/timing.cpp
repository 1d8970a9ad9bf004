#include "trireme/mesh/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "trireme/base/error.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {
namespace {

using enum Action::Kind;

class TimedPlay {
 public:
  TimedPlay(const Schedule& schedule, const Costs& costs)
      : schedule_(schedule), costs_(costs), clock_(schedule.stages, 0), next_(schedule.stages, 0) {
    auto parts = static_cast<std::size_t>(schedule.stages) * schedule.chunks;
    for (const auto* list :
         {&costs.forward, &costs.backward, &costs.weights, &costs.activation, &costs.gradient, &costs.update}) {
      if (list->empty() || list->size() == parts) continue;
      throw ConfigError(fmt::format("pipeline: costs of {} parts for {} parts", list->size(), parts));
    }
    timing_.actions.resize(schedule.stages);
    timing_.busy_s.resize(schedule.stages, 0);
  }

  Timing run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        while (next_[stage] < schedule_.actions[stage].size() && act(stage, schedule_.actions[stage][next_[stage]])) {
          ++next_[stage];
          moved = true;
        }
      }
    }
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      if (next_[stage] == schedule_.actions[stage].size()) continue;
      const Action& action = schedule_.actions[stage][next_[stage]];
      throw ConfigError(fmt::format("pipeline: stage {} waits for ever for {} of micro-batch {}", stage,
                                    name(action.kind), action.micro_batch));
    }
    finish();
    return std::move(timing_);
  }

 private:
  double seconds(const Action& action, int stage) const {
    int part = action.chunk * schedule_.stages + stage;
    auto of = [&](const std::vector<double>& list) { return list.empty() ? 0 : list[part]; };
    switch (action.kind) {
      case forward:
        return of(costs_.forward);
      case backward:
        return of(costs_.backward);
      case weight_gradient:
        return of(costs_.weights);
      case update:
        return of(costs_.update);
      case send_activation:
        return of(costs_.activation);
      case send_gradient:
        return of(costs_.gradient);
      default:
        return 0;
    }
  }

  // False while what it receives has not been sent.
  bool act(int stage, const Action& action) {
    double begin = clock_[stage];
    int peer = peer_of(action, schedule_.stages, stage);
    if (sends(action)) {
      Wire& wire = wires_[{stage, peer}];
      wire.free_s = std::max(wire.free_s, begin) + seconds(action, stage);
      wire.arrivals.push_back(wire.free_s);
    } else if (receives(action)) {
      Wire& wire = wires_[{peer, stage}];
      if (wire.arrivals.empty()) return false;
      clock_[stage] = std::max(begin, wire.arrivals.front());
      wire.arrivals.pop_front();
    } else {
      clock_[stage] += seconds(action, stage);
      timing_.busy_s[stage] += seconds(action, stage);
    }
    timing_.actions[stage].push_back({action, begin, clock_[stage]});
    return true;
  }

  void finish() {
    double first_begin = 0, busy = 0;
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (const Timed& timed : timing_.actions[stage]) {
        const Action& action = timed.action;
        timing_.makespan_s = std::max(timing_.makespan_s, timed.end_s);
        if (action.micro_batch != 0 || stage != 0 || action.chunk != 0) continue;
        if (action.kind == forward) first_begin = timed.begin_s;
        if (action.kind == backward) timing_.first_latency_s = timed.end_s - first_begin;
      }
      busy += timing_.busy_s[stage];
    }
    for (double mine : timing_.busy_s) timing_.idle_s.push_back(timing_.makespan_s - mine);
    if (timing_.makespan_s > 0) timing_.bubble = 1 - busy / (schedule_.stages * timing_.makespan_s);
  }

  struct Wire {
    double free_s = 0;
    std::deque<double> arrivals;
  };
  const Schedule& schedule_;
  const Costs& costs_;
  std::vector<double> clock_;
  std::vector<std::size_t> next_;
  std::map<std::pair<int, int>, Wire> wires_;  // by sender and receiver
  Timing timing_;
};

}  // namespace

Costs equal_costs(const Schedule& schedule, double forward, double backward) {
  auto parts = static_cast<std::size_t>(schedule.stages) * schedule.chunks;
  double chunk_backward = backward / schedule.chunks;
  Costs costs;
  costs.forward.assign(parts, forward / schedule.chunks);
  costs.backward.assign(parts, schedule.splits_backward ? chunk_backward / 2 : chunk_backward);
  if (schedule.splits_backward) costs.weights.assign(parts, chunk_backward / 2);
  return costs;
}

Timing time_of(const Schedule& schedule, const Costs& costs) { return TimedPlay(schedule, costs).run(); }

}  // namespace trireme::pipelines
