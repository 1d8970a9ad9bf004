// Which way to train is best: algorithm × buckets × lanes × strategy × codec × workers × mesh, as far as `trireme
// train` can run them together and a worker's memory holds them.
//
// What is in the space comes from the registries. A way (workers, strategy, codec, mesh) has a bound that no simulation
// of it can beat: its compute, its share of a pipeline's bubble, one all-reduce of everything it sends. Candidates are
// judged by simulate() in the order of their bounds, until no bound is better than what was found; of the variants of a
// way (algorithm, buckets, lanes) those that closed forms put far behind are not simulated. One question, one answer.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cluster/cluster.h"
#include "trireme/cluster/planner/option.h"
#include "trireme/cluster/profile/profile.h"

namespace trireme::cluster {

enum class Objective : std::uint8_t {
  step,      // least seconds a sample: with equal workers, the shortest step
  accuracy,  // least seconds until the model is as good
  cost       // least money until then
};
std::string_view name(Objective objective);
// Throws ConfigError that lists the names.
Objective parse_objective(std::string_view text);

// What may be chosen. An empty list means all there is: of the registries, and 1, 2, 4, … up to all workers.
struct Space {
  std::vector<std::string> strategies, codecs;  // with their settings: "local-sgd:H=4"
  std::vector<std::string> algorithms, bucket_plans;
  std::vector<int> workers, lanes;
  bool meshes = true;  // pipelines, tensor parallel layers, sharding, recomputation
};

struct Question {
  Cluster cluster;
  Profile profile;
  Objective objective = Objective::step;
  Space space;
  std::uint64_t memory_bytes = 0;  // of a worker; 0: what the cluster says, unlimited where it says nothing
  double state_factor = 3;         // bytes of weights, gradient and optimizer per byte of weights
  double epochs = 4;               // that training with small batches would need, for accuracy and cost
  int top = 10;                    // how many ways the answer should have
  int most = 1000;                 // plans to simulate
  int steps = 20;                  // of each simulation; fewer on large clusters
  bool exhaustive = false;         // no bounds and no closed forms: simulate whatever fits
  std::uint64_t seed = 1;
};

struct LeftOut {
  std::size_t plans = 0;
  std::string why;
};

struct Found {
  std::vector<Option> options;    // best first: of each way its best variant; `top` of them, where there are
  std::string prediction;         // of the first, as predicted.json
  std::size_t considered = 0;     // plans in the space
  std::size_t judged = 0;         // of which were simulated
  std::vector<LeftOut> left_out;  // the others, and why
  std::vector<std::string> notes;
};

// Called now and then; `judged` of at most `of` plans so far.
using Progress = std::function<void(std::size_t judged, std::size_t of)>;

// Throws ConfigError where the space names what there is not, or nothing in it fits: then it says what would.
Found search(const Question& question, const Progress& progress = {});

// The benchmark's: 1,000 plans for a large convolutional network on 8 nodes at 10 Gbit/s, every one simulated.
struct SearchCase {
  int nodes = 0;
  std::size_t plans = 0;
  double best_step_s = 0;
};
SearchCase run_search_case();

}  // namespace trireme::cluster
