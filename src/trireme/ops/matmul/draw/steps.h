// The tiles, packing and loops of a matrix product, from a record of one that ran.
#pragma once
#include "trireme/ops/draw/drawing.h"
#include "trireme/ops/matmul/draw/trace.h"

namespace trireme::ops {

// Of one product, from a trace.
struct MatmulCounts {
  double multiplications = 0;  // in the tiles
  double slots = 0;            // of the vector units, with those beyond c's edge
  int64_t tiles = 0;           // calls of the kernel
  int64_t packed_a = 0;        // floats read to be packed
  int64_t packed_b = 0;
};
MatmulCounts count_events(const MatmulTrace& trace);

inline constexpr double kMostDrawnProducts = 0x1p32;

// Throws ConfigError where the sizes cannot be drawn.
OpDrawing draw_matmul(int64_t m, int64_t n, int64_t k);

}  // namespace trireme::ops
