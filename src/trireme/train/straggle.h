// Workers that are slow on purpose: to see what each way to synchronize loses to them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "trireme/plan/cluster.h"

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
  // The same for a simulation, of steps that compute so long; nothing where nobody is slowed, or where only `pauses`
  // are asked for and there are none.
  std::optional<plan::Straggler> in_cluster(double compute_s, bool pauses) const;

 private:
  enum class Kind { none, persistent, random } kind_ = Kind::none;
  int rank_ = 0;
  double factor_ = 1, probability_ = 0, seconds_ = 0;
};

}  // namespace trireme::train
