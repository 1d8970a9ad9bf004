// Which input rows the output rows of a sliding window need: convolutions, poolings and locally connected layers that
// are split along height or width.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/parallel/tensor/tensor_collectives.h"

namespace trireme::parallel {

// Along one dimension, in elements.
struct Window {
  std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  std::int64_t outputs(std::int64_t inputs) const {
    std::int64_t room = inputs + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

// What one rank needs for its outputs: inputs, and rows of padding before and behind them.
struct Need {
  Range inputs;
  std::int64_t before = 0, behind = 0;
};
Need need_of(const Window& window, const Range& outputs, std::int64_t inputs);

}  // namespace trireme::parallel
