// A convolution along one side of a picture, as places that are read: output i reads the source at
// first + i · step + offset for each place of the kernel. Places outside of the source are zeros.
#pragma once
#include <vector>

#include "trireme/ops/conv/conv.h"

namespace trireme::ops::im2col {

struct Axis {
  int64_t source = 0;  // length of the side that is read
  int64_t count = 0;   // outputs
  int64_t first = 0;
  int64_t step = 1;
  int64_t out_first = 0;  // the place of output i is out_first + i · out_step
  int64_t out_step = 1;
  std::vector<int64_t> offsets;  // ascending, from 0
  std::vector<int64_t> kernel;   // the kernel's place that each offset belongs to

  // Places read by so many outputs that follow each other.
  int64_t reach(int64_t outputs) const { return offsets.empty() ? 0 : (outputs - 1) * step + offsets.back() + 1; }
  bool reads_outside() const { return first < 0 || first + reach(count) > source; }
};

Axis forward_axis(const ConvShape& shape, std::size_t side);
// The input's places h with (h + padding) mod stride = phase: each gathers the outputs that it took part in. With a
// stride s there are s such phases, each a convolution of stride 1 with some of the kernel's places, or none.
Axis gradient_axis(const ConvShape& shape, std::size_t side, int64_t phase);

}  // namespace trireme::ops::im2col
