#include "trireme/operators/conv_runs.h"

namespace trireme::operators {
namespace {

using torch::Tensor;

// Grows, and is kept by the thread: memory fresh from the system is as slow to touch as the pass itself.
std::span<std::byte> workspace(std::int64_t bytes) {
  thread_local Tensor kept;
  if (bytes == 0) return {};
  if (!kept.defined() || kept.numel() < bytes) kept = torch::empty({bytes}, torch::kUInt8);
  return {static_cast<std::byte*>(kept.data_ptr()), static_cast<std::size_t>(bytes)};
}

Tensor empty_input(const ops::ConvShape& shape) {
  return empty_channels_last({shape.batch, shape.in_channels, shape.height, shape.width});
}
Tensor empty_weight(const ops::ConvShape& shape) {
  return torch::empty({shape.out_channels, shape.in_channels / shape.groups, shape.kernel[0], shape.kernel[1]});
}
Tensor empty_output(const ops::ConvShape& shape) {
  return empty_channels_last({shape.batch, shape.out_channels, shape.out_height(), shape.out_width()});
}

Tensor run_libtorch(const ConvPass& it) {
  const auto& shape = it.shape;
  if (it.pass == ops::Pass::forward) {
    return channels_last(at::convolution(it.input, it.weight, maybe(it.bias), shape.stride, shape.padding,
                                         shape.dilation, false, {0, 0}, shape.groups));
  }
  const bool of_data = it.pass == ops::Pass::data;
  // Of the tensor that the pass does not read only the sizes are looked at.
  const auto input = of_data ? empty_input(shape) : it.input, weight = of_data ? it.weight : empty_weight(shape);
  const auto all =
      at::convolution_backward(it.output, input, weight, at::OptionalIntArrayRef{}, shape.stride, shape.padding,
                               shape.dilation, false, {0, 0}, shape.groups, {of_data, !of_data, false});
  return of_data ? channels_last(std::get<0>(all)) : std::get<1>(all).contiguous();
}

}  // namespace

std::string_view name_of(const ops::ConvAlgorithm* algorithm) { return algorithm ? algorithm->name() : "libtorch"; }

Tensor run(const ConvPass& it, const ops::ConvAlgorithm* algorithm) {
  torch::NoGradGuard no_grad;
  if (!algorithm) return run_libtorch(it);
  Tensor input = it.input, weight = it.weight, output = it.output;
  Tensor& written = it.pass == ops::Pass::forward ? output : it.pass == ops::Pass::data ? input : weight;
  written = it.pass == ops::Pass::forward ? empty_output(it.shape)
            : it.pass == ops::Pass::data  ? empty_input(it.shape)
                                          : empty_weight(it.shape);
  algorithm->run(it.shape, it.pass, {data(input), data(weight), data(output), data(it.bias)},
                 workspace(algorithm->cost(it.shape, it.pass).workspace));
  return written;
}

}  // namespace trireme::operators
