// The tiled matrix product's parts, for matmul.cpp.
#pragma once
#include <cstdint>

#include "trireme/ops/matmul/kernels.h"
#include "trireme/ops/matmul/matmul.h"

namespace trireme::ops::internal {

// Writes panels first … last − 1 of rows [l0, l0 + k) of b, which has n columns; `out` has packed_size() floats for
// all panels.
void pack_panels(const MatmulKernels& kernels, const Matrix& b, int64_t l0, int64_t k, int64_t n, int64_t first,
                 int64_t last, float* out);
int64_t packed_size(const MatmulKernels& kernels, int64_t k, int64_t n);

// On the team of the calling thread; `packed` is all of b, or null.
void tiled_product(const MatmulKernels& kernels, const Product& product, const float* packed);
// On the calling thread alone.
void tiled_product_alone(const MatmulKernels& kernels, const Product& product, const float* packed);

}  // namespace trireme::ops::internal
