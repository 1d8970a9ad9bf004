// The transforms of Winograd's convolution, for every SIMD target; m is 2 or 4, n = m + 2. Element (i, j) of a
// transformed tile belongs to the matrix i · n + j.
#pragma once
#include "trireme/ops/conv/tiled/transform.h"

namespace trireme::ops::conv_kernels {

void winograd_data(int m, const tiled::TileRead& read);        // Bᵀ d B
void winograd_gradients(int m, const tiled::TileRead& read);   // A y Aᵀ
void winograd_products(int m, const tiled::TileWrite& write);  // Aᵀ M A
void winograd_filters(int m, const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to);  // G w Gᵀ
void winograd_fold(int m, const tiled::FilterPlaces& from, int64_t count, float* to);  // Gᵀ U G

}  // namespace trireme::ops::conv_kernels
