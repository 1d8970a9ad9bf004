// What the tiled matrix product needs of an instruction set; tile_kernels.cpp has one table for each.
//
//   L  lanes of a vector
//   panel  columns that lie beside each other in packed b: 2·L
//   tile   what one call computes: up to `rows` rows of c times one half, one or two panels, in registers
//
// Packed a: tile after tile, in each [k][rows of the tile]. Packed b: panel after panel, in each [k][panel], the
// columns that the last one lacks as zeros.
#pragma once
#include <cstdint>

namespace trireme::ops::internal {

// What is read soon, from memory: rows of lines, 64 bytes each. Tiles ask for a line every other step of k, in order,
// so that memory answers while they compute.
struct ReadAhead {
  const char* row = nullptr;
  int64_t stride = 0;  // bytes, from this row to the next
  int64_t lines = 1;   // of a row
  int64_t line = 0;    // of this row, the next one asked for
};

struct TileCall {
  const float* a = nullptr;  // [k][rows], packed; or as it lies: row r begins at a + r · a_row
  int64_t a_row = 0;
  const float* b = nullptr;  // [k][panel], packed
  int64_t b_panel = 0;       // from this panel to the next
  int64_t k = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t columns = 0;  // of c; fewer than the tile's where c ends
  bool add = false;     // to what c holds
  const float* bias = nullptr;
  bool relu = false;
  ReadAhead* ahead = nullptr;  // moved on; or null. Tiles of few rows have no time for it
};

// Where the source ends at `count`, 1 ≤ count ≤ width: copies read no further, and fill up with zeros. Both write up
// to a vector behind the last row.
using Pack = void (*)(const float* source, int64_t stride, int64_t k, int64_t count, int64_t width, float* out);

inline constexpr int kMostTileRows = 14;
inline constexpr int kTileWidths = 3;  // half a panel, one, two

// c(r, i) = sums[i · stride + r], r < rows, i < columns, with the rest as of a tile; bias of columns. Reads whole
// vectors of sums.
struct TurnCall {
  const float* sums = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* bias = nullptr;
  bool relu = false;
};

struct MatmulKernels {
  int64_t lanes = 0;
  int64_t panel = 0;
  int64_t rows = 0;       // most rows of a tile up to one panel wide
  int64_t wide_rows = 0;  // and of one two panels wide
  using Tile = void (*)(const TileCall& call);
  Tile tile[kTileWidths][kMostTileRows + 1] = {};  // by width and rows
  Tile tile_in_place[kTileWidths][kMostTileRows + 1] = {};
  void (*turn)(const TurnCall& call) = nullptr;
  Pack copy = nullptr;       // out[l · width + i] = source[l · stride + i]
  Pack transpose = nullptr;  // out[l · width + i] = source[i · stride + l]
  // `count` tiles beside each other in the source, the first `longer` of one row more than `rows`: what copy does of
  // each, row by row of the source, for its rows lie far apart. Writes no further than the last row.
  void (*copy_tiles)(const float* source, int64_t stride, int64_t k, int64_t count, int64_t rows, int64_t longer,
                     float* out) = nullptr;
  // `count` whole panels that lie beside each other in the source.
  void (*copy_panels)(const float* source, int64_t stride, int64_t k, int64_t count, float* out) = nullptr;
};

// Those of the best instruction set allowed.
const MatmulKernels& matmul_kernels();

}  // namespace trireme::ops::internal
