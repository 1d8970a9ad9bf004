// How much of what it computes a way to train turns into learning.
//
// A batch of B samples takes 1 + B/B_noise times as many samples to the same loss as a small one (McCandlish, Kaplan,
// Amodei et al., 2018, equation 2.12), B_noise = tr Σ / |G|², the gradient noise scale that a profile measures. What
// else stale weights, local steps and codecs cost is found by co-simulation: real SGD of a small model in the
// simulator's order of events, against all-reduce with as many workers.
//
//   seconds to accuracy = samples needed with small batches ÷ (samples a second · efficiency)
#pragma once
#include <map>
#include <string>
#include <utility>

#include "trireme/cluster/planner/candidates.h"

namespace trireme::cluster {

// Of a sample: 1/(1 + B/B_noise). With an unknown noise scale (0), 1.
double batch_efficiency(double batch, double noise_scale);

// Of strategies and codecs, relative to all-reduce of what was computed; remembered.
class Efficiencies {
 public:
  explicit Efficiencies(const Question& question) : question_(question) {}
  // From 0, of what never gets there, to 1, of what is as good as all-reduce or better.
  double relative(const Candidate& candidate);
  // More workers than are co-simulated: found with fewer.
  bool fewer_workers() const { return fewer_; }

 private:
  const Question& question_;
  std::map<std::pair<std::string, int>, double> known_;
  bool fewer_ = false;
};

}  // namespace trireme::cluster
