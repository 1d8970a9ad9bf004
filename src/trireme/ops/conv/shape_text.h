// Shapes of convolutions as text: BATCHxCHANNELSxHEIGHTxWIDTH,FILTERSxHEIGHTxWIDTH and what differs from 1, padding
// from 0, as in 16x64x32x32,128x3x3,stride=2,padding=1. Values for both sides are written 2x1.
#pragma once
#include <string>
#include <string_view>

#include "trireme/ops/conv/conv.h"

namespace trireme::ops {

std::string text_of(const ConvShape& shape);
// Throws ConfigError, also where the shape cannot be.
ConvShape parse_conv_shape(std::string_view text);
// "4x4", or "3" for a square. Throws ConfigError with `what`.
std::array<int64_t, 2> parse_sides(std::string_view text, std::string_view what);

}  // namespace trireme::ops
