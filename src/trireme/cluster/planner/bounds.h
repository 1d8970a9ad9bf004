// What no simulation of a way can beat, and what closed forms say of its variants. Private to the search.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/cluster/network.h"
#include "trireme/cluster/planner/step_bound.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::cluster {

class Bounds {
 public:
  Bounds(const Question& question, const Network& network, std::shared_ptr<mesh::MeshSplits> splits)
      : question_(question), network_(network), exchange_(question, network), splits_(std::move(splits)) {}

  // Samples a second that the way cannot exceed; by what it computes and the bytes it sends.
  double most_samples_per_s(const Candidate& candidate);
  // A closer look: by its collectives, which are played, or by its stages, which are cut and scheduled.
  double most_at_closer_look(const Candidate& candidate);
  // The variants worth simulating, the plain one first: of the others those whose closed form is near the best.
  std::vector<Variant> promising(const Candidate& candidate, std::vector<Variant> variants);

 private:
  // Seconds of an all-reduce, at 4, 8, 16, … bytes; negative: not asked yet.
  struct Costs {
    const Algorithm* algorithm = nullptr;  // null: what is picked for each size
    int workers = 1;
    std::vector<double> seconds;
  };
  Costs& costs_of(const std::string& algorithm, int workers);
  // Straight lines between those sizes.
  double all_reduce_s(Costs& costs, double bytes);
  double at_octave(Costs& costs, std::size_t octave);
  double compute_s() const;
  double replica_s(const Candidate& candidate);
  double exchange_s(const Candidate& candidate, const Variant& variant);
  std::vector<Variant> feasible(const Candidate& candidate, std::vector<Variant> variants) const;
  std::vector<sync::Gradient> gradients() const;

  const Question& question_;
  const Network& network_;
  StepBound exchange_;
  std::shared_ptr<mesh::MeshSplits> splits_;
  std::map<std::tuple<std::string, int, int, int, int>, double> stages_;  // seconds of a mesh with one replica
  std::map<int, double> speeds_;                                          // of so many workers together
  std::map<std::pair<std::string, int>, Costs> costs_;
};

}  // namespace trireme::cluster
