// How well a strategy learns from a sample, for those whose gradients are late, local or compressed: a small model is
// really trained, in the order of the simulator's time.
//
// The model is a network of one hidden layer on data from a seed. Strategies that meet are the real ones
// (sync/strategies.h), on ranks that are threads, with real codecs. Of those at their own pace the simulator says who
// reads and who changes weights when, and gradients are computed and applied in that order: staleness is exact.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/cluster/sim/job/simulate.h"

namespace trireme::cluster {

struct Learning {
  double samples = 0;    // until the loss was at the target; infinite where it never was
  double reference = 0;  // the same of plain all-reduce
  double target = 0;     // the loss
  double loss = 0;       // the least that was reached
  // Statistical efficiency: what plain all-reduce on as many workers needs over what this needs. 0: never there.
  double efficiency = 0;
  double mean_stale = 0;  // updates that a gradient was late by, on average
};

struct LearningTrialOptions {
  int most_workers = 16;  // of a larger job so many learn
  int batch = 4;          // samples of a worker and step
  int steps = 150;        // of plain all-reduce; the target is what it reaches in two thirds of them
  double patience = 4;    // times that, until it is given up
  double lr = 0.05, momentum = 0.9;
  std::uint64_t seed = 1;
};

// Strategy, codec, workers, servers, profile and cluster as the job has them. A second or so.
Learning cosimulate(const Cluster& cluster, const Job& job, const LearningTrialOptions& options = {});

}  // namespace trireme::cluster
