#include "trireme/ops/conv/conv.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/ops/conv/algorithms.h"

namespace trireme::ops {

void check(const ConvShape& shape) {
  const auto positive = [](int64_t size, const char* what) {
    if (size < 1) throw ConfigError(fmt::format("convolution: {} is {}; it must be at least 1", what, size));
  };
  if (shape.batch < 0)
    throw ConfigError(fmt::format("convolution: the batch is {}; it cannot be negative", shape.batch));
  positive(shape.in_channels, "the number of input channels");
  positive(shape.out_channels, "the number of output channels");
  positive(shape.height, "the height");
  positive(shape.width, "the width");
  positive(shape.groups, "the number of groups");
  if (shape.in_channels % shape.groups != 0 || shape.out_channels % shape.groups != 0) {
    throw ConfigError(fmt::format("convolution: {} groups do not divide {} input and {} output channels", shape.groups,
                                  shape.in_channels, shape.out_channels));
  }
  for (std::size_t side = 0; side < 2; ++side) {
    const char* where = side == 0 ? "height" : "width";
    positive(shape.kernel[side], fmt::format("the kernel's {}", where).c_str());
    positive(shape.stride[side], fmt::format("the stride over the {}", where).c_str());
    positive(shape.dilation[side], fmt::format("the dilation over the {}", where).c_str());
    if (shape.padding[side] < 0)
      throw ConfigError(fmt::format("convolution: the padding of the {} is negative", where));
    const int64_t reach = shape.dilation[side] * (shape.kernel[side] - 1) + 1;
    const int64_t size = (side == 0 ? shape.height : shape.width) + 2 * shape.padding[side];
    if (reach > size) {
      throw ConfigError(fmt::format("convolution: the kernel reaches over {} of the {}, the padded image has {}", reach,
                                    where, size));
    }
  }
}

std::span<const ConvAlgorithm* const> conv_algorithms() {
  static const std::array all{&direct_conv(), &im2col_conv(), &winograd2_conv(), &winograd4_conv(),
                              &fft_conv(),    &bf16_conv(),   &amx_conv()};
  return all;
}

const ConvAlgorithm* find_conv_algorithm(std::string_view name) {
  for (const ConvAlgorithm* algorithm : conv_algorithms()) {
    if (algorithm->name() == name) return algorithm;
  }
  return nullptr;
}

}  // namespace trireme::ops
