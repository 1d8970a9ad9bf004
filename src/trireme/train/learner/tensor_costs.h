// Which pieces of a model can be split over a tensor axis, and what they then exchange.
#pragma once
#include <span>
#include <vector>

#include "trireme/mesh/choice/mesh_choice.h"
#include "trireme/nn/chain.h"
#include "trireme/train/config/config.h"

namespace trireme::train {

// One for each piece, whose layers the rules split: outputs are exchanged, forward and backward. A model without rules
// has none; a wrong --tensor-rule throws ConfigError.
std::vector<mesh::TensorCost> tensor_costs(const Config& config, torch::nn::Module& model, const nn::Chain& chain,
                                           std::span<const mesh::PieceCost> costs);

}  // namespace trireme::train
