#include "trireme/collective/run/call_plan.h"

#include <algorithm>

namespace trireme {
namespace {

Schedule schedule_for(const Algorithm& algorithm, Call call, std::size_t count) {
  call.count = count;
  return algorithm.plan(call);
}

}  // namespace

FlatSchedule::FlatSchedule(const Schedule& schedule) : scratch_(schedule.scratch), stage_(schedule.stage) {
  Round round;
  for (int k = 0; k < schedule.rounds; ++k) {
    round.clear();
    schedule.fill(k, round);
    steps_.insert(steps_.end(), round.begin(), round.end());
    starts_.push_back(steps_.size());
  }
}

std::size_t FlatSchedule::widest_round() const {
  std::size_t widest = 0;
  for (int k = 0; k < rounds(); ++k) widest = std::max(widest, starts_[k + 1] - starts_[k]);
  return widest;
}

CallPlan::CallPlan(const Algorithm& algorithm, const Call& call, std::size_t segment)
    : algorithm_(&algorithm), call_(call), segment_(segment == 0 ? std::max<std::size_t>(call.count, 1) : segment) {
  segments_ = static_cast<int>(std::max<std::size_t>(1, (call.count + segment_ - 1) / segment_));
  last_ = FlatSchedule(schedule_for(algorithm, call, call.count - offset(segments_ - 1)));
  whole_ = segments_ == 1 ? last_ : FlatSchedule(schedule_for(algorithm, call, segment_));
}

std::size_t CallPlan::widest_superstep() const {
  return std::max(whole_.widest_round(), last_.widest_round()) * static_cast<std::size_t>(depth());
}

}  // namespace trireme
