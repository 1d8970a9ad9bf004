// A module's layers by our operators, in place: parameters, buffers, names and checkpoints stay what they are.
#pragma once
#include <torch/torch.h>

#include <vector>

#include "trireme/operators/settings.h"

namespace trireme::operators {

// From now on layers that use this module's parameters compute with our operators, on any thread. With
// Operators::libtorch they are LibTorch's again.
void optimize(const torch::nn::Module& module, const Settings& settings = {});

// What its layers ran since, in the order of the module's parameters.
std::vector<Use> uses(const torch::nn::Module& module);

}  // namespace trireme::operators
