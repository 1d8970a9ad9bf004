// The algorithms of convolution, one file each.
#pragma once
#include "trireme/ops/conv/conv.h"

namespace trireme::ops {

const ConvAlgorithm& direct_conv();
const ConvAlgorithm& im2col_conv();
const ConvAlgorithm& winograd2_conv();
const ConvAlgorithm& winograd4_conv();
const ConvAlgorithm& fft_conv();

}  // namespace trireme::ops
