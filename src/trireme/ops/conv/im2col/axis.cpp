#include "trireme/ops/conv/im2col/axis.h"

namespace trireme::ops::im2col {

Axis forward_axis(const ConvShape& shape, std::size_t side) {
  Axis axis{.source = side == 0 ? shape.height : shape.width,
            .count = side == 0 ? shape.out_height() : shape.out_width(),
            .first = -shape.padding[side],
            .step = shape.stride[side]};
  for (int64_t r = 0; r < shape.kernel[side]; ++r) {
    axis.offsets.push_back(r * shape.dilation[side]);
    axis.kernel.push_back(r);
  }
  return axis;
}

Axis gradient_axis(const ConvShape& shape, std::size_t side, int64_t phase) {
  const int64_t stride = shape.stride[side], padding = shape.padding[side];
  const int64_t length = side == 0 ? shape.height : shape.width;
  Axis axis{.source = side == 0 ? shape.out_height() : shape.out_width(), .out_step = stride};
  axis.out_first = ((phase - padding) % stride + stride) % stride;
  axis.count = axis.out_first < length ? (length - axis.out_first - 1) / stride + 1 : 0;
  axis.first = (axis.out_first + padding - phase) / stride;
  for (int64_t r = shape.kernel[side] - 1; r >= 0; --r) {
    const int64_t back = phase - r * shape.dilation[side];
    if (back % stride != 0) continue;
    axis.offsets.push_back(back / stride);
    axis.kernel.push_back(r);
  }
  if (axis.offsets.empty()) return axis;
  const int64_t least = axis.offsets.front();
  axis.first += least;
  for (int64_t& offset : axis.offsets) offset -= least;
  return axis;
}

}  // namespace trireme::ops::im2col
