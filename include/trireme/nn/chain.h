// A model as a row of pieces, so that it can be cut between any two of them: into stages of a pipeline, into segments
// that are computed again, into units whose parameters are gathered when needed.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trireme::nn {

// What passes from one piece to the next: the activation, and behind it the skip connections under way. The first
// dimension of each is the batch.
using Values = std::vector<torch::Tensor>;

struct Piece {
  std::string name;                                         // "features.0", "layer1.0.conv2"
  std::vector<std::shared_ptr<torch::nn::Module>> modules;  // whose parameters and buffers it uses, all below them
  std::function<Values(Values)> forward;
  std::vector<torch::Tensor> parameters = {};  // others that it uses
};
// In order. Two pieces may use the same parameter.
using Chain = std::vector<Piece>;

// One piece for each module of a Sequential.
Chain chain_of(torch::nn::Sequential sequential);

// One piece for each layer of a Sequential that has a matrix of weights, with the modules up to the next; names begin
// with `prefix`.
Chain layers_of(torch::nn::Sequential sequential, const std::string& prefix);
// The piece does this to its activation before all else.
void begin_with(Piece& piece, std::function<torch::Tensor(const torch::Tensor&)> first);

// The pieces first … last − 1, one after the other.
Values run(const Chain& chain, Values values, std::size_t first, std::size_t last);
torch::Tensor run(const Chain& chain, const torch::Tensor& input);

using Named = std::vector<std::pair<std::string, torch::Tensor>>;

// The parameters, or the buffers, that pieces first … last − 1 use, under their names in `model`, in its order.
Named parameters_of(const torch::nn::Module& model, const Chain& chain, std::size_t first, std::size_t last);
Named buffers_of(const torch::nn::Module& model, const Chain& chain, std::size_t first, std::size_t last);

// A module with just these tensors, live, under these names: "a.b.weight" is `weight` of its child `b` of child `a`.
std::shared_ptr<torch::nn::Module> module_of(const Named& parameters, const Named& buffers);

}  // namespace trireme::nn
