// What the tiled matrix product does, in its order: recorded while it runs, by kernels that note each call and then
// call the real one.
#pragma once
#include <cstdint>
#include <vector>

namespace trireme::ops {

// In the product's rows and columns: of c for a tile, of a or b for what is packed; l runs along k.
struct MatmulEvent {
  enum class Kind { pack_a, pack_b, tile } kind = Kind::tile;
  int64_t i = 0, rows = 0;     // not of pack_b
  int64_t j = 0, columns = 0;  // not of pack_a
  int64_t l = 0, depth = 0;
  int64_t lanes = 0;      // columns that the kernel computes, with those beyond c's edge; of a tile
  bool in_place = false;  // a is read as it lies
  bool add = false;       // to what c holds
};

struct MatmulTrace {
  int64_t m = 0, n = 0, k = 0;
  int64_t lanes = 0, panel = 0, rows = 0, wide_rows = 0;  // of the kernels: ops/matmul/kernels.h
  std::vector<float> a, b, c;                             // row by row; c is the result
  std::vector<MatmulEvent> events;
};

// c = a · b on one thread, of numbers of its own; n from 2 on.
MatmulTrace trace_matmul(int64_t m, int64_t n, int64_t k);

}  // namespace trireme::ops
