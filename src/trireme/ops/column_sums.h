// Sums over rows: the gradient of a bias.
#pragma once
#include <cstdint>

namespace trireme::ops {

// out(j) = Σ over i of x[i · stride + j], or adds that to it. On the team of the calling thread; the same bits on any
// number of threads: 128 rows at a time, and then their sums, so that many rows lose little.
void column_sums(int64_t rows, int64_t columns, const float* x, int64_t stride, float* out, bool accumulate = false);

}  // namespace trireme::ops
