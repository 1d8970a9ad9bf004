// The algorithms of the matrix product, one file each.
#pragma once
#include "trireme/ops/matmul/matmul.h"

namespace trireme::ops {

const MatmulAlgorithm& reference_matmul();
const MatmulAlgorithm& tiled_matmul();
const MatmulAlgorithm& bf16_matmul();
const MatmulAlgorithm& amx_matmul();

}  // namespace trireme::ops
