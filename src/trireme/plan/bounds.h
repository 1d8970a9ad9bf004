// What no simulation of a way can beat, and what closed forms say of its variants. Private to the search.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trireme/plan/bucket_plan.h"
#include "trireme/plan/ways.h"

namespace trireme::plan {

class Bounds {
 public:
  Bounds(const Question& question, const Network& network) : question_(question), network_(network) {}

  // Samples a second that the way cannot exceed.
  double most_samples_per_s(const Way& way);
  // The variants worth simulating, the plain one first: of the others those whose closed form is near the best.
  std::vector<Variant> promising(const Way& way, std::vector<Variant> variants);

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
  const Network& network_of(int workers);
  double compute_s() const;
  double exchange_s(const Way& way, const Variant& variant);
  std::vector<Variant> feasible(const Way& way, std::vector<Variant> variants) const;
  std::vector<Gradient> gradients() const;

  const Question& question_;
  const Network& network_;
  std::map<int, Network> networks_;
  std::map<std::pair<std::string, int>, Costs> costs_;
};

}  // namespace trireme::plan
