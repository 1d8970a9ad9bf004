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
  const auto like = [&](const Tensor& x) { return x.to(it.output.scalar_type()); };
  const auto input = of_data ? like(empty_input(shape)) : it.input,
             weight = of_data ? it.weight : like(empty_weight(shape));
  const auto all =
      at::convolution_backward(it.output, input, weight, at::OptionalIntArrayRef{}, shape.stride, shape.padding,
                               shape.dilation, false, {0, 0}, shape.groups, {of_data, !of_data, false});
  return of_data ? channels_last(std::get<0>(all)) : std::get<1>(all).contiguous();
}

Tensor run_libtorch_in_bf16(const ConvPass& it) {
  const auto cast = [](const Tensor& x) { return x.defined() ? x.to(torch::kBFloat16) : x; };
  return run_libtorch({it.shape, it.pass, cast(it.input), cast(it.weight), cast(it.output), cast(it.bias)})
      .to(torch::kFloat32);
}

}  // namespace

Tensor run(const ConvPass& it, const ConvImplementation& implementation) {
  torch::NoGradGuard no_grad;
  const auto* algorithm = implementation.algorithm;
  if (!algorithm) return implementation.bf16 ? run_libtorch_in_bf16(it) : run_libtorch(it);
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
