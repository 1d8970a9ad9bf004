// What training took, of this worker: seconds and bytes, without those of evaluations, checkpoints and predictions.
#pragma once
#include <cstdint>
#include <functional>

#include "trireme/base/clock.h"
#include "trireme/train/checkpoint/state.h"

namespace trireme::train {

class TrainingMeter {
 public:
  // `traffic`: all bytes that this worker has sent so far.
  explicit TrainingMeter(std::function<std::uint64_t()> traffic) : traffic_(std::move(traffic)) {}

  // What the run it goes on from had taken.
  void go_on_from(const Place& place) {
    from_seconds_ = place.train_seconds;
    from_bytes_ = place.bytes_sent;
  }

  // When the step that is to be made began: with the end of the one before, where it follows on it.
  double step_begins() const { return last_ > 0 ? last_ : now_seconds(); }
  // Seconds of the step that began then.
  double step_ends(double begin, Place& place) {
    last_ = now_seconds();
    place.train_seconds += last_ - begin;
    return last_ - begin;
  }

  // Nothing of `use` counts, nor what was waited since the last step.
  template <typename Use>
  void leave_out(const Use& use) {
    const auto counted_from = before_, sent = traffic_();
    use();
    before_ = counted_from + traffic_() - sent;
    last_ = now_seconds();
  }
  // Nothing of `use` counts; all since the last step besides it does.
  template <typename Use>
  auto without(const Use& use) {
    const auto sent = traffic_();
    const double begin = now_seconds();
    auto result = use();
    before_ += traffic_() - sent;
    if (last_ > 0) last_ += now_seconds() - begin;
    return result;
  }

  // At a mark: up to here it counts, and from resume() on again.
  void pause(Place& place) {
    if (last_ > 0) place.train_seconds += now_seconds() - last_;
    count_bytes(place);
  }
  void resume() {
    last_ = 0;
    before_ = traffic_();
  }
  void count_bytes(Place& place) {
    sent_ += traffic_() - before_;
    tell_bytes(place);
  }
  void tell_bytes(Place& place) const { place.bytes_sent = from_bytes_ + sent_; }

  std::uint64_t sent() const { return sent_; }                                              // in this process
  double seconds(const Place& place) const { return place.train_seconds - from_seconds_; }  // in this process
  double from_seconds() const { return from_seconds_; }

 private:
  const std::function<std::uint64_t()> traffic_;
  double from_seconds_ = 0;  // of training, before this process
  std::uint64_t from_bytes_ = 0;
  std::uint64_t sent_ = 0, before_ = 0;
  double last_ = 0;  // when the last step ended; 0: nothing to count from
};

}  // namespace trireme::train
