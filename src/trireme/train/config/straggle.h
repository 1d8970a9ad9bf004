// Workers that are slow on purpose: to see what each way to synchronize loses to them.
#pragma once
#include <cstdint>
#include <string_view>

namespace trireme::train {

// "rank=1,factor=3": this worker takes three times as long for what it computes. "random,p=0.1,ms=50": every worker
// pauses before one step in ten, drawn from the seed. Empty: nobody is slowed.
class Straggle {
 public:
  // Throws ConfigError that says what is understood.
  explicit Straggle(std::string_view text = {});

  // Throws ConfigError where the worker that is to be slow is none of so many; `what` they are called.
  void check_rank(std::int64_t there, std::string_view what) const;

  // Seconds that `rank` is to be held up in its step `step`, whose own compute takes `compute_s`.
  double delay(int rank, std::int64_t step, double compute_s, std::uint64_t seed) const;

  enum class Kind { none, persistent, random };
  Kind kind() const { return kind_; }
  int rank() const { return rank_; }                   // persistent: who is slow
  double factor() const { return factor_; }            // and by how much
  double probability() const { return probability_; }  // random: of a pause before a step
  double pause_s() const { return seconds_; }

 private:
  Kind kind_ = Kind::none;
  int rank_ = 0;
  double factor_ = 1, probability_ = 0, seconds_ = 0;
};

}  // namespace trireme::train
