// What the residual networks share: their convolutions and their first layers.
#pragma once
#include <torch/torch.h>

#include <cstdint>

#include "trireme/models/options.h"

namespace trireme::models {

// Without bias, since batch normalization follows; padded so that stride 1 keeps the size.
torch::nn::Conv2d plain_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1);

// conv1: 3x3 for small images; 7x7 with stride 2, to be followed by pool_stem(), for others.
torch::nn::Conv2d stem_conv(const Image& image, std::int64_t width);
torch::Tensor pool_stem(const torch::Tensor& x);

// He et al., "Delving deep into rectifiers": normal with variance 2 / (fan out), for every convolution below.
void init_convolutions(torch::nn::Module& module);

}  // namespace trireme::models
