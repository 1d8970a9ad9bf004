// Where a model is cut into stages: where the user says, or where the measured times and memory of its pieces say.
#pragma once
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/mesh/split/stage_split.h"
#include "trireme/nn/chain.h"
#include "trireme/parallel/memory_formula.h"
#include "trireme/parallel/mesh.h"
#include "trireme/train/config/config.h"

namespace trireme::train {

struct ChosenSplit {
  std::vector<std::size_t> starts;
  std::string why;  // a few words
};
// Collective over the mesh: the first worker measures, for all.
ChosenSplit split_of(const Config& config, torch::nn::Module& model, const nn::Chain& chain, Mesh& mesh,
                     const torch::Tensor& example);

// What a piece cost this worker, run by run, in seconds.
struct TimedPiece {
  std::vector<double> forward, backward;
  mesh::PieceCost cost;  // with the medians
};
std::vector<TimedPiece> time_pieces(torch::nn::Module& model, const nn::Chain& chain, const torch::Tensor& example,
                                    int runs);
// What the pieces cost this worker with a micro-batch like `example`: the median of some runs.
std::vector<mesh::PieceCost> measure_pieces(torch::nn::Module& model, const nn::Chain& chain,
                                            const torch::Tensor& example);

// From a worker of `line` to the next, as they send and receive: half of a round trip, waking the other included. The
// first two take part; elsewhere the numbers say nothing.
mesh::Machine measure_links(Communicator& line);

// Bytes of weights, gradient and optimizer per byte of weights.
double state_factor(const Config& config);

// What each keeps of a micro-batch like `example`, and what enters it: from a few samples, scaled.
std::vector<parallel::PieceMemory> memory_of_pieces(torch::nn::Module& model, const nn::Chain& chain,
                                                    const torch::Tensor& example);

}  // namespace trireme::train
