// How well steps of training are predicted: models by strategies by codecs, simulated from a profile and the costs of
// links, then trained.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trireme/cli/bench/judged.h"
#include "trireme/cli/bench/kept.h"
#include "trireme/cli/bench/predict/training_runs.h"

namespace trireme::bench {

struct TrainingQuestion {
  int workers = 2;
  int rounds = 2;
  double seconds = 3.0;                             // of training in each run, about
  std::vector<std::string> models{"mlp", "lenet"};  // NAME or NAME:BATCH
  std::vector<std::string> codecs{"none", "int8", "topk:0.01"};
  std::vector<std::string> strategies;  // empty: all
};

// What a planner would have picked of one model's ways to train, and how good that was.
struct Picked {
  std::string group, picked, best;
  // A step, measured once more together with the ways that had measured best: the best of many measurements is one
  // that was lucky.
  double picked_s = 0, best_s = 0;
  double kendall = 0;  // of all ways
  // The same of pairs of ways that measured further apart than measurements are from themselves: one round from the
  // others, or over slow links a step without exchange from the next; how many of all pairs those are.
  double noise = 0, kendall_beyond_noise = 0, pairs_beyond_noise = 0;
  double loss() const { return picked_s / best_s - 1; }
};

struct TrainingAnswer {
  std::vector<Judged> steps;
  Picked pick;
};

// `trireme tune` is run in the place, then for each model `trireme profile` and all ways to train in turn, but for
// those that were kept. `tell` hears of each model when it is done.
void judge_training(const TrainingQuestion& question, const Place& place, Kept& kept,
                    const std::function<void(const TrainingAnswer&)>& tell);

// That at least one way to train is left in the place. Throws ConfigError.
void require_ways(const TrainingQuestion& question, const Place& place);

}  // namespace trireme::bench
