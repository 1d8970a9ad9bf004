// The algorithms of convolution, one file each.
#pragma once
#include "trireme/ops/conv/conv.h"

namespace trireme::ops {

const ConvAlgorithm& direct_conv();
const ConvAlgorithm& im2col_conv();
const ConvAlgorithm& winograd2_conv();
const ConvAlgorithm& winograd4_conv();
const ConvAlgorithm& fft_conv();
const ConvAlgorithm& bf16_conv();
const ConvAlgorithm& amx_conv();
// amx_conv() on emulated registers, for tests; not in the list.
const ConvAlgorithm& emulated_amx_conv();

}  // namespace trireme::ops
