// One step of training, from a batch to the next weights: the only place where it is written. The trainer, workers that
// come later (train/), programs with loops of their own (train/synchronize.h), the planner's co-simulation (plan/) and
// the conformance tests all run it.
#pragma once
#include "trireme/base/clock.h"
#include "trireme/sync/strategy.h"

namespace trireme::sync {

// Who learns in a step: a worker's modules, or, without LibTorch, a few numbers.
class Worker {
 public:
  virtual ~Worker() = default;
  // Forward and backward. Every gradient that is ready goes to its bucket, every full bucket to the strategy's
  // exchange; returns when all have arrived. False: they are not to be used, for some are not finite. Clipped only
  // where the step is not this worker's: else what it steps by is, and that may be another.
  virtual bool compute(const Step& step) = 0;
  // The optimizer's step, with the gradients that are in place, clipped.
  virtual void update(const Step& step) = 0;
  // Before and after each of the strategy's turns, where weights must be brought to it and back.
  virtual void lend() {}
  virtual void take_back() {}
};

// What a step took, in seconds, besides computing.
struct StepTimes {
  double synchronization = 0, optimizer = 0;
};

namespace internal {
inline void take_turn(Strategy& strategy, Worker& worker, const Step& now, void (Strategy::*turn)(const Step&),
                      StepTimes& times) {
  const double begin = now_seconds();
  worker.lend();
  (strategy.*turn)(now);
  worker.take_back();
  times.synchronization += now_seconds() - begin;
}
}  // namespace internal

// A program with a loop of its own calls the two halves, and computes between them.
inline void begin_step(Strategy& strategy, Worker& worker, const Step& now, StepTimes& times) {
  internal::take_turn(strategy, worker, now, &Strategy::before_forward, times);
}
inline void end_step(Strategy& strategy, Worker& worker, const Step& now, StepTimes& times) {
  const bool good = worker.compute(now);  // gradient → bucket → strategy.exchange(): a collective, or nothing
  internal::take_turn(strategy, worker, now, &Strategy::after_backward, times);  // servers, peers, what is late
  const double begin = now_seconds();
  const bool steps = (good || strategy.averages(now.number)) && !strategy.skips_step();
  if (steps && !strategy.traits().owns_step) worker.update(now);
  times.optimizer = now_seconds() - begin;
  internal::take_turn(strategy, worker, now, &Strategy::after_step, times);
}

inline StepTimes run_step(Strategy& strategy, Worker& worker, const Step& now) {
  StepTimes times;
  begin_step(strategy, worker, now, times);
  end_step(strategy, worker, now, times);
  return times;
}

}  // namespace trireme::sync
