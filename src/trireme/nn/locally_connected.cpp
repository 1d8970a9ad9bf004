#include "trireme/nn/locally_connected.h"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/error.h"

namespace trireme::nn {

LocallyConnected2dImpl::LocallyConnected2dImpl(const LocallyConnected2dOptions& layer_options)
    : options(layer_options) {
  std::array<std::int64_t, 2> places{};
  for (int d = 0; d < 2; ++d) {
    std::int64_t room = options.size[d] + 2 * options.padding[d] - options.kernel[d];
    if (room < 0 || options.kernel[d] < 1 || options.stride[d] < 1 || options.padding[d] < 0) {
      throw ConfigError(fmt::format("locally connected layer: a kernel of {} with stride {} does not fit {} pixels",
                                    options.kernel[d], options.stride[d], options.size[d]));
    }
    places[d] = room / options.stride[d] + 1;
  }
  std::int64_t inputs = options.in * options.kernel[0] * options.kernel[1];
  double bound = 1 / std::sqrt(static_cast<double>(inputs));
  weight = register_parameter("weight", torch::empty({places[0], places[1], options.out, inputs}));
  torch::nn::init::uniform_(weight, -bound, bound);
  if (options.bias) {
    bias = register_parameter("bias", torch::empty({options.out, places[0], places[1]}));
    torch::nn::init::uniform_(bias, -bound, bound);
  }
}

torch::Tensor LocallyConnected2dImpl::connect(const torch::Tensor& input, const std::array<std::int64_t, 2>& padding) {
  const std::int64_t n = input.size(0), height = weight.size(0), width = weight.size(1), out = weight.size(2);
  // [n, inputs, places] → one product for each place: [out, inputs] · [inputs, n].
  auto columns = torch::im2col(input, options.kernel, {1, 1}, padding, options.stride).permute({2, 1, 0});
  auto result = torch::bmm(weight.view({height * width, out, -1}), columns);
  result = result.permute({2, 1, 0}).reshape({n, out, height, width});
  return bias.defined() ? result + bias : result;
}

}  // namespace trireme::nn
