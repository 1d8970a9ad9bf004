// Which parameters of a model each stage holds, and what to do about those that several hold.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/nn/chain.h"

namespace trireme::parallel {

// Where parts of a chain begin: part p is pieces starts[p] … starts[p + 1] − 1, of stage p % stages.
using Starts = std::vector<std::size_t>;
std::size_t end_of_part(const Starts& starts, std::size_t part, std::size_t pieces);

// Parts of about equal numbers of weights, each of at least one piece.
Starts equal_weights(const torch::nn::Module& model, const nn::Chain& chain, std::size_t parts);
// "NAME,NAME…": the pieces at which parts begin, but for the first. Throws ConfigError that lists the pieces.
Starts named_starts(const nn::Chain& chain, const std::string& names, std::size_t parts);

struct StageParameters {
  nn::Named parameters, buffers;  // of this stage, under the model's names and in its order
  // Of `parameters`, those for which this is the first stage that has them: it counts them in norms and saves them.
  std::set<std::string> first_here;
};
StageParameters stage_parameters_of(const torch::nn::Module& model, const nn::Chain& chain, const Starts& starts,
                                    int stages, int stage);

// Gives back the memory of what this stage does not hold; the model cannot be run as a whole afterwards.
void release_others(torch::nn::Module& model, const StageParameters& held);

// Parameters that several stages use: each has a copy, and their gradients are summed.
class TiedWeights {
 public:
  // Collective over `pipe`.
  TiedWeights(const torch::nn::Module& model, const nn::Chain& chain, const Starts& starts, Communicator& pipe);
  // Collective over the stages that share something. A .grad that is missing counts as zeros.
  void sum_gradients();

  struct Group {
    Communicator comm;  // of the stages that have them
    std::vector<std::string> names;
    std::vector<torch::Tensor> tensors;
  };
  std::vector<Group>& groups() { return groups_; }

 private:
  std::vector<Group> groups_;
};

}  // namespace trireme::parallel
