// The transforms of Winograd's convolution, for every SIMD target; m is 2 or 4, n = m + 2. Vectors run over channels,
// which lie side by side; element (i, j) of a transformed tile goes to the matrix i · n + j, `part` elements from one
// to the next.
#pragma once
#include <cstdint>

namespace trireme::ops::conv_kernels {

// Tiles of a picture as pointers to the first channel of each of their places, row by row.
struct TileRead {
  const float* const* places = nullptr;
  int64_t tiles = 0;
  int64_t channels = 0;
  float* out = nullptr;
  int64_t part = 0;
  int64_t tile = 0;   // elements from a tile to the next
  int64_t strip = 0;  // elements from 16 channels to the next 16
};
void transform_data(int m, const TileRead& read);       // Bᵀ d B of n × n places; zeros beyond the channels
void transform_gradients(int m, const TileRead& read);  // A y Aᵀ of m × m places; zeros beyond the channels

// Aᵀ M A, added to bias, into the m × m places that are not null.
struct TileWrite {
  const float* in = nullptr;
  int64_t part = 0;
  int64_t tile = 0;
  float* const* places = nullptr;
  int64_t offset = 0;  // elements, added to each
  int64_t tiles = 0;
  int64_t channels = 0;
  const float* bias = nullptr;
};
void transform_products(int m, const TileWrite& write);

// G w Gᵀ of `count` filters in each of 16 lanes: from[filter][9][16] to out[part][filter][16]; `rotated`: by half a
// turn.
void transform_filters(int m, const float* from, bool rotated, int64_t count, float* out, int64_t part);
// Gᵀ U G, the reverse direction.
void fold_filters(int m, const float* in, int64_t part, int64_t count, float* to);

}  // namespace trireme::ops::conv_kernels
