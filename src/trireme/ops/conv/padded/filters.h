// The kernel's weights as right factors of products over a padded image: strips of 16 filters, each
// [places of the kernel][lines of channels][16 pairs][16], zeros behind the last channel and filter.
#pragma once
#include "trireme/ops/conv/im2col/axis.h"
#include "trireme/ops/matmul/bf16_kernels.h"

namespace trireme::ops::padded {

// Of a shape of one group. `turned`: filters and channels in each other's place, for the gradient of data; the axes say
// which of the kernel's places come, in which order. Runs on the team.
void pack_filters(const internal::Bf16Packing& packing, const ConvShape& shape, bool turned, const im2col::Axis& down,
                  const im2col::Axis& across, const float* weight, uint32_t* to);

}  // namespace trireme::ops::padded
