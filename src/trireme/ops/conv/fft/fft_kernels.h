// The transforms of convolution by Fourier transforms, for every SIMD target; n is 8, 16 or 32. Row u and column k of a
// spectrum belong to the matrix k · n + u.
#pragma once
#include <array>

#include "trireme/ops/conv/tiled/transform.h"

namespace trireme::ops::conv_kernels {

using Sides = std::array<int64_t, 2>;

// Of tiles of rows × columns places, zeros up to n × n.
void fft_tiles(int n, Sides size, const tiled::TileRead& read);
void fft_products(int n, Sides outputs, const tiled::TileWrite& write);
// The conjugate spectrum as a right factor: data and result have real parts, then imaginary ones.
void fft_filters(int n, Sides kernel, const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to);
// From data times gradients to data times conjugate gradients, and back to the kernel's places.
void fft_fold(int n, Sides kernel, const tiled::FilterPlaces& from, int64_t count, float* to);

}  // namespace trireme::ops::conv_kernels
