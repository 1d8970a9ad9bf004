// The tile of a matrix product whose factors are rounded to bf16, for CPUs that multiply pairs of them (AVX512-BF16).
//
// Packed a: tile after tile, in each [k/2][rows] pairs; packed b: panels of 32 columns, in each [k/2][32] pairs, a pair
// being rows 2l and 2l + 1 of one column. An odd k ends with a zero.
#pragma once
#include <cstdint>

namespace trireme::ops::internal {

inline constexpr int64_t kBf16Rows = 14;
inline constexpr int64_t kBf16Panel = 32;

struct Bf16Tile {
  const uint32_t* a = nullptr;
  const uint32_t* b = nullptr;
  int64_t pairs = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t columns = 0;  // of c; at most a panel's
  bool add = false;
  const float* bias = nullptr;
  bool relu = false;
};

// Whether this CPU has the instructions, and the limit on instruction sets allows them.
bool has_bf16();
void bf16_tile(int64_t rows, const Bf16Tile& tile);
// out[l · width + i] = x[2l · width + i] and x[(2l + 1) · width + i], rounded to nearest even; x has k rows. Reads and
// writes up to a vector behind the last row.
void bf16_pairs(const float* x, int64_t k, int64_t width, uint32_t* out);

}  // namespace trireme::ops::internal
