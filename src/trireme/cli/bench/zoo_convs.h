// The convolutions of the zoo's models for images, for benchmarks that know nothing of LibTorch.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/ops/conv/conv.h"

namespace trireme::bench {

struct ZooConv {
  int layers = 1;  // of this shape
  ops::ConvShape shape;
};

std::vector<std::string_view> models_with_convs();
// On the images that the model is trained on here: 32 × 32 in colour; lenet 28 × 28 in grey. Throws ConfigError naming
// those there are.
std::vector<ZooConv> convs_of(std::string_view model, int64_t batch);

}  // namespace trireme::bench
