// When a run ends: all workers after the same step, or, at their own pace, when what was given to them is done.
#pragma once
#include <array>
#include <csignal>
#include <utility>

#include "trireme/sync/strategy.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/trainer/stop_question.h"

namespace trireme::train {

class Stopping {
 public:
  // `told`: not 0 once this worker was asked to stop; may be null.
  Stopping(WorkerGroup& group, const sync::Strategy& strategy, const volatile std::sig_atomic_t* told)
      : group_(group), strategy_(strategy), told_(told) {}

  bool asked() const { return told_ != nullptr && *told_ != 0; }
  bool stopped() const { return stopped_; }
  bool all_made_their_steps() const { return ended_; }
  // Some went on alone since the last mark, so that another one brings all to the same place.
  bool apart() const { return apart_; }
  void stop() { stopped_ = true; }

  // `told`: some worker was asked to, where a step's exchange says so.
  void after_step(bool told, std::int64_t step) {
    const auto& traits = strategy_.traits();
    if (traits.in_backward) {
      stopped_ = told;
    } else if (traits.own_pace) {
      if (asked() && !std::exchange(said_, true)) group_.stop_giving();
    } else {
      stopped_ = question_.answer(group_);
      if (!stopped_ && question_.due(step, strategy_.meets(step))) question_.ask(group_, asked(), step);
    }
  }

  // At their own pace some have made all their steps when others come to a mark. So all ask before one, and before the
  // end. `samples`: of this worker, since the last mark. Collective.
  bool all_finished(bool finished, double samples) {
    if (!strategy_.traits().own_pace) return finished;
    std::array counts{finished ? 1.0 : 0.0, 1.0, samples};
    group_.sum(counts);
    ended_ = counts[0] == counts[1];
    uneven_ = uneven_ || (counts[0] > 0 && !ended_);
    apart_ = uneven_ && counts[2] > 0;
    return ended_;
  }

  // What it has under way has been sent.
  void settle() const { question_.settle(group_); }
  // Takes in what is under way. Collective.
  void end() {
    if (strategy_.traits().own_pace) group_.announce(std::nullopt);
    (void)question_.answer(group_);
  }

 private:
  WorkerGroup& group_;
  const sync::Strategy& strategy_;
  const volatile std::sig_atomic_t* const told_;
  StopQuestion question_;
  bool said_ = false, stopped_ = false;
  bool ended_ = false, uneven_ = false, apart_ = false;  // as all_finished() found it
};

}  // namespace trireme::train
