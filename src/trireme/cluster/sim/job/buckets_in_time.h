// A backward whose gradients travel bucket by bucket, as grad/reducer.cpp does it: on the training thread where no core
// is spare, else behind its back. Private to the simulator.
#pragma once
#include <span>
#include <vector>

#include "trireme/cluster/sim/job/simulation.h"

namespace trireme::cluster {

class BucketsInTime {
 public:
  // Plans the buckets as the runtime would once it has measured.
  explicit BucketsInTime(Simulation& simulation);

  struct Told {
    std::vector<double> exposed;  // by rank
    double communication = 0;     // of the first rank
    ExchangeParts parts;          // of the first rank
  };
  // Advances every rank's time from the beginning of backward to its end. `factor` by rank: of compute.
  Told backward(std::span<double> now, std::span<const double> factor);
  // The buckets of the last backward.
  void trace(Simulated& result, std::int64_t step) const;
  std::size_t count() const { return buckets_.size(); }

 private:
  struct OneBucket {
    double ready_s = 0;  // since backward began, at the median
    double pack_s = 0;
    double bytes = 0;
    int gradients = 0;
    Legs legs;
    double alone_s = 0, latency_s = 0;
  };
  // By rank.
  struct Times {
    std::vector<double> full, begin, end;  // when a bucket was full, and its exchange began and ended
    std::vector<double> rate;              // of compute meanwhile: 1 is undisturbed
  };
  // A rank's compute in this backward, so far.
  struct Computing {
    double now, done;    // the time, and that at which as much would have been done undisturbed
    std::size_t bucket;  // beside it
  };
  void plan();
  sync::BucketCosts costs();
  void in_line(std::span<double> now, std::span<const double> factor, Told& told);
  void in_background(std::span<double> now, std::span<const double> factor, Told& told);
  // When a rank's compute has come so far as it would have by `undisturbed`, with the first so many buckets beside it.
  // Asked in the order of time.
  double computed(std::size_t r, double undisturbed, std::size_t buckets);
  // What it still lacks of that at a time.
  double left(std::size_t r, double undisturbed, std::size_t buckets, double at) const;
  // Goes on until so much is done or it is so late.
  void walk(Computing& on, std::size_t r, std::size_t buckets, double undisturbed, double at) const;
  void notes(std::span<double> now, Told& told);
  void account(const OneBucket& bucket, const Times& times, Told& told) const;

  Simulation& sim_;
  std::vector<OneBucket> buckets_;
  bool notes_apart_ = true;                 // as where codes travel
  std::vector<Times> last_;                 // by bucket
  std::vector<Computing> computing_;        // by rank
  std::vector<std::vector<double>> lanes_;  // by lane and rank: when it is free
};

}  // namespace trireme::cluster
