// The steps by which an algorithm convolves one small picture of one channel with one filter, from the code that runs:
// its own transforms, windows and results.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trireme/ops/conv/conv.h"

namespace trireme::ops {

struct ConvGrid {
  std::string label;
  std::vector<std::vector<std::string>> rows;
};

struct ConvStep {
  std::string text;
  std::vector<ConvGrid> grids;  // side by side
};

struct ConvDrawing {
  std::string title;
  std::vector<ConvStep> steps;
};

inline constexpr int64_t kMostDrawn = 32;  // of a side

// Numbers of its own; the lecture notes' for 3 × 3 and 2 × 2. Throws ConfigError where the algorithm does not take the
// sizes, or they cannot be drawn.
ConvDrawing draw_conv(const ConvAlgorithm& algorithm, std::array<int64_t, 2> input, std::array<int64_t, 2> kernel);

std::string conv_text(const ConvDrawing& drawing);
std::string conv_page(const ConvDrawing& drawing);  // HTML

}  // namespace trireme::ops
