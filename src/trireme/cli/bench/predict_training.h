// How well steps of training are predicted: models by strategies by codecs, simulated from a profile and the costs of
// links, then trained.
#pragma once
#include <string>
#include <vector>

#include "trireme/cli/bench/judged.h"
#include "trireme/plan/cluster.h"

namespace trireme::bench {

// Where workers run: on this host, or on emulated ones with such links.
struct Place {
  std::string name;       // "this host", "2 hosts, 1gbit"
  std::string bandwidth;  // of emulated hosts; empty: this host
};

struct TrainingQuestion {
  int workers = 2;
  int rounds = 2;
  double seconds = 1.5;                             // of training in each run, about
  std::vector<std::string> models{"mlp", "lenet"};  // NAME or NAME:BATCH
  std::vector<std::string> codecs{"none", "int8", "topk:0.01"};
  std::vector<std::string> strategies;  // empty: all
};

// What a planner would have picked of one model's ways to train, and how good that was.
struct Picked {
  std::string group, picked, best;
  double picked_s = 0, best_s = 0;  // a step, measured
  double kendall = 0;               // of all ways
  double loss() const { return picked_s / best_s - 1; }
};

struct TrainingAnswer {
  std::vector<Judged> steps;
  std::vector<Picked> picks;
};

// `trireme tune` is run in the place, then `trireme profile` for each model, then all ways to train in turn.
TrainingAnswer judge_training(const TrainingQuestion& question, const Place& place);

// The cluster that a place is, its costs as tune measures them there now. Throws Error where tune failed.
plan::Cluster measured_cluster(const Place& place, int workers);

}  // namespace trireme::bench
