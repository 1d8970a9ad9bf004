// What no simulation of a way can be faster than, from its compute and what it sends. Private to the search.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "trireme/cluster/network.h"
#include "trireme/cluster/planner/candidates.h"

namespace trireme::cluster {

class StepBound {
 public:
  StepBound(const Question& question, const Network& network) : question_(question), network_(network) {}
  // Seconds of a step from the bytes that are sent alone. Nothing is said (0) of workers that share memory.
  double bytes_s(const Candidate& candidate);
  // Of a way without a mesh: from its collectives, played.
  double exchange_s(const Candidate& candidate) const;
  // Seconds that a mesh's stages compute and pass on in a step, on a worker of speed 1.
  double stages_s(const Candidate& candidate, double speed);

 private:
  bool in_one_memory(int workers);
  double sent_by_each(const Candidate& candidate, int ranks) const;

  const Question& question_;
  const Network& network_;
  std::map<std::pair<std::string, int>, double> sent_;               // bytes, by strategy, codec and replicas
  std::map<int, double> byte_s_;                                     // by the distance of replicas
  std::map<int, bool> one_memory_;                                   // by workers
  std::map<std::tuple<std::string, int, int, int>, double> stages_;  // by schedule, pipe, tensor and micro-batches
};

}  // namespace trireme::cluster
