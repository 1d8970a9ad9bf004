// Which tensors a model has, and which of them learn. Whoever exchanges, lays out, steps or counts parameters asks
// here, so that all speak of the same ones in the same order.
#pragma once
#include <vector>

#include "trireme/grad/bucket_memory.h"

namespace trireme::grad {

// Those that are there and want a gradient, in the model's order; one that several modules share is there once, by its
// first name.
std::vector<Parameter> learning(const torch::nn::Module& model);

// All buffers, and all parameters with all buffers after them: every name that is there.
std::vector<Parameter> buffers_of(const torch::nn::Module& model);
std::vector<Parameter> everything(const torch::nn::Module& model);

}  // namespace trireme::grad
