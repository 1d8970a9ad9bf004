// The loops of products in bf16, by any of their kernels.
#pragma once
#include "trireme/ops/matmul/bf16_kernels.h"
#include "trireme/ops/matmul/matmul.h"

namespace trireme::ops::internal {

// On the team of the calling thread.
void bf16_product(const Bf16Kernel& kernel, const Product& product);

}  // namespace trireme::ops::internal
