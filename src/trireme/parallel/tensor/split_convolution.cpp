// Convolutions, poolings and locally connected layers in parts.
//   out-channels, channels  each rank has the kernels of its outputs. Input whole, output in parts.
//   in-channels             each rank has the kernels' share of its inputs; the addends are summed, then the bias
//   added. space, height, width    each rank computes rows (or columns) of the output and gets from its neighbours the
//   inputs
//                           at its edges. A convolution's weights stay whole, and their gradients are summed over the
//                           ranks; the weights of a locally connected layer belong to places, and are cut with them.
#include <limits>

#include "trireme/nn/layers.h"
#include "trireme/nn/locally_connected.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/split_window.h"

namespace trireme::parallel {
namespace {

MadeSplit split_by(OnTensor forward) { return std::make_shared<nn::Split>(nn::Split{std::move(forward)}); }

std::int64_t at(const torch::ExpandingArray<2>& pair, int d) { return (*pair)[d]; }

// The padding in numbers, or a refusal. LibTorch's variants are the standard's in 2.x: get_if is found by its argument.
std::array<std::int64_t, 2> padding_of(const nn::Conv2dImpl& layer, const SplitRequest& request) {
  if (layer.options.padding_mode().index() != 0) {
    refuse(request, "a convolution whose padding is not zeros is split by out-channels only");
  }
  const auto& padding = layer.options.padding();
  if (const auto* numbers = get_if<torch::ExpandingArray<2>>(&padding)) return {at(*numbers, 0), at(*numbers, 1)};
  if (get_if<torch::enumtype::kValid>(&padding)) return {0, 0};
  std::array<std::int64_t, 2> same{};
  for (int d = 0; d < 2; ++d) {
    std::int64_t total = at(layer.options.dilation(), d) * (at(layer.options.kernel_size(), d) - 1);
    if (total % 2 != 0) refuse(request, "padding 'same' with an even kernel is split by out-channels only");
    same[d] = total / 2;
  }
  return same;
}

MadeSplit conv_out_channels(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::Conv2dImpl&>(module);
  if (layer.options.groups() != 1) refuse(request, "a convolution in groups is split by space only");
  const Cut cut{0, 1, sizes_for(request, layer.weight.size(0), "channels")};
  request.cut(layer.weight, cut);
  if (layer.bias.defined()) request.cut(layer.bias, cut);
  return split_by([&layer, enter = shared_input(request)](const torch::Tensor& x) { return layer.plain(enter(x)); });
}

MadeSplit conv_in_channels(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::Conv2dImpl&>(module);
  if (layer.options.groups() != 1) refuse(request, "a convolution in groups is split by space only");
  auto padding = padding_of(layer, request);
  auto [enter, sizes] = part_input(request, 1);
  request.cut(layer.weight, {1, 1, sizes});
  return split_by([&layer, padding, enter = enter, &comm = request.comm](const torch::Tensor& x) {
    const auto& options = layer.options;
    auto y = sum_out(torch::conv2d(enter(x), layer.weight, {}, options.stride(), padding, options.dilation()), comm);
    return layer.bias.defined() ? y.add_(layer.bias.view({1, -1, 1, 1})) : y;
  });
}

MadeSplit conv_space(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::Conv2dImpl&>(module);
  const auto& options = layer.options;
  auto padding = padding_of(layer, request);
  Window window{at(options.kernel_size(), 0), at(options.stride(), 0), padding[0], at(options.dilation(), 0)};
  padding[0] = 0;
  auto enter = window_input(request, 2, window).enter;
  return split_by([&layer, padding, enter, &comm = request.comm](const torch::Tensor& x) {
    const auto& set = layer.options;
    auto bias = layer.bias.defined() ? copy_in(layer.bias, comm) : torch::Tensor();
    return torch::conv2d(enter(x), copy_in(layer.weight, comm), bias, set.stride(), padding, set.dilation(),
                         set.groups());
  });
}

MadeSplit pool_space(torch::nn::Module& module, const SplitRequest& request) {
  const auto& options = dynamic_cast<nn::MaxPool2dImpl&>(module).options;
  if (options.ceil_mode()) refuse(request, "a pooling with ceil_mode is not split");
  Window window{at(options.kernel_size(), 0), at(options.stride(), 0), at(options.padding(), 0),
                at(options.dilation(), 0)};
  auto enter = window_input(request, 2, window, -std::numeric_limits<double>::infinity()).enter;
  return split_by([&options, enter](const torch::Tensor& x) {
    return torch::max_pool2d(enter(x), options.kernel_size(), options.stride(), {0, at(options.padding(), 1)},
                             options.dilation());
  });
}

MadeSplit connected_channels(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::LocallyConnected2dImpl&>(module);
  auto sizes = sizes_for(request, layer.weight.size(2), "channels");
  request.cut(layer.weight, {2, 1, sizes});
  if (layer.bias.defined()) request.cut(layer.bias, {0, 1, sizes});
  return split_by([&layer, enter = shared_input(request)](const torch::Tensor& x) { return layer.plain(enter(x)); });
}

// Along height (0) or width (1).
template <int kAxis>
MadeSplit connected_places(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::LocallyConnected2dImpl&>(module);
  auto padding = layer.options.padding;
  Window window{layer.options.kernel[kAxis], layer.options.stride[kAxis], padding[kAxis]};
  padding[kAxis] = 0;
  auto [enter, sizes] = window_input(request, 2 + kAxis, window);
  request.cut(layer.weight, {kAxis, 1, sizes});
  if (layer.bias.defined()) request.cut(layer.bias, {1 + kAxis, 1, sizes});
  return split_by(
      [&layer, padding, enter = enter](const torch::Tensor& x) { return layer.connect(enter(x), padding); });
}

constexpr SplitKind kConvolution[] = {
    {"out-channels", conv_out_channels}, {"in-channels", conv_in_channels}, {"space", conv_space}};
constexpr SplitKind kPooling[] = {{"space", pool_space}};
constexpr SplitKind kLocallyConnected[] = {
    {"channels", connected_channels}, {"height", connected_places<0>}, {"width", connected_places<1>}};

}  // namespace

std::span<const SplitKind> convolution_kinds() { return kConvolution; }
std::span<const SplitKind> pooling_kinds() { return kPooling; }
std::span<const SplitKind> locally_connected_kinds() { return kLocallyConnected; }

}  // namespace trireme::parallel
