// The kernel's weights as right factors of im2col's products: strips of 16 filters, in the order in which a window's
// taps and channels come; and the way back.
#pragma once
#include "trireme/ops/conv/im2col/axis.h"

namespace trireme::ops::im2col {

// Of one group, forward: strips of filters, [filters / 16][places of the kernel][channels][16]. Runs on the team.
void pack_filters(const ConvShape& shape, int64_t group, const float* weight, float* to);
// Of one group and phase of the gradient of data: strips of channels, [channels / 16][places of both
// axes][filters][16].
void pack_channels(const ConvShape& shape, int64_t group, const Axis& down, const Axis& across, const float* weight,
                   float* to);
// The inverse of pack_filters.
void unpack_filters(const ConvShape& shape, int64_t group, const float* from, float* weight);

}  // namespace trireme::ops::im2col
