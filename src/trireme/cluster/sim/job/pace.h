// How long a worker computes: the profile's seconds by the speed of its node, who is slow, and jitter. Private to the
// simulator. Drawn from the seeds: the same for whoever asks again in the same order.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/cluster/network.h"
#include "trireme/cluster/profile/profile.h"

namespace trireme::cluster {

class Pace {
 public:
  // `learners` of a worker compute at once. Without `noise` every step takes its median, but for those who are always
  // slow.
  Pace(const Network& network, const Profile& profile, int learners, std::uint64_t seed, bool noise);

  // What a step of this worker that begins at `at_s` takes times the profile's median. A worker's times only go up.
  double factor(int worker, std::int64_t step, double at_s);
  // Whether all workers always take the same.
  bool steady() const { return steady_; }

 private:
  // Slow and well in turns.
  struct Turns {
    double slow = 1, on_s = 0, off_s = 0;  // means
    bool on = false;
    double until_s = 0;
    std::uint64_t drawn = 0;
  };
  double residual(int worker, std::int64_t step) const;
  double turned(std::size_t worker, double at_s);

  const std::uint64_t seed_;
  std::vector<double> base_;       // by worker
  std::vector<double> residuals_;  // sorted; empty: none
  std::vector<Turns> turns_;       // by worker; empty: nobody is slow in turns
  bool steady_ = true;
};

}  // namespace trireme::cluster
