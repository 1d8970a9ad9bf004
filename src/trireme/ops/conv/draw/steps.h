// The steps by which an algorithm convolves one small picture of one channel with one filter, from the code that runs:
// its own transforms, windows and results.
#pragma once
#include "trireme/ops/conv/conv.h"
#include "trireme/ops/draw/drawing.h"

namespace trireme::ops {

inline constexpr int64_t kMostDrawn = 32;  // of a side

// Numbers of its own; the lecture notes' for 3 × 3 and 2 × 2. Throws ConfigError where the algorithm does not take the
// sizes, or they cannot be drawn.
OpDrawing draw_conv(const ConvAlgorithm& algorithm, std::array<int64_t, 2> input, std::array<int64_t, 2> kernel);

}  // namespace trireme::ops
