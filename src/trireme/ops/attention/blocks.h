// Blocks of queries and keys, for both directions of attention.
#pragma once
#include <algorithm>

#include "trireme/ops/aligned.h"
#include "trireme/ops/attention/attention.h"
#include "trireme/ops/attention/tile_passes.h"
#include "trireme/ops/matmul/tiled.h"
#include "trireme/ops/random_place.h"

namespace trireme::ops::internal {

// Of queries and of keys alike: a causal block is then seen whole, or it lies on the diagonal.
inline constexpr int64_t kBlock = 64;

inline int64_t ceil_quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t block_count(int64_t length) { return ceil_quotient(length, kBlock); }

// Rows of one head in blocks, packed as right-hand sides: as they are, or turned.
class PackedBlocks {
 public:
  void pack(const MatmulKernels& kernels, const float* x, int64_t step, int64_t length, int64_t dim, bool turned) {
    size_ = turned ? packed_size(kernels, dim, kBlock) : packed_size(kernels, kBlock, dim);
    floats_.grow(size_ * block_count(length));
    for (int64_t from = 0; from < length; from += kBlock) {
      const int64_t rows = std::min(kBlock, length - from);
      float* out = floats_.data() + from / kBlock * size_;
      const Matrix right{x + from * step, step, turned};
      if (turned) {
        pack_panels(kernels, right, 0, dim, rows, 0, ceil_quotient(rows, kernels.panel), out);
      } else {
        pack_panels(kernels, right, 0, rows, dim, 0, ceil_quotient(dim, kernels.panel), out);
      }
    }
  }
  const float* block(int64_t i) const { return floats_.data() + i * size_; }

 private:
  AlignedFloats floats_;
  int64_t size_ = 0;
};

// The block of scores that begins at a query and a key, cut where lengths end.
inline ScoreBlock score_block(const AttentionShape& shape, int64_t head, int64_t query, int64_t key) {
  ScoreBlock block;
  block.rows = std::min(kBlock, shape.queries - query);
  block.columns = std::min(kBlock, shape.keys - key);
  block.stride = kBlock;
  block.query = query;
  block.key = key;
  block.causal = shape.causal && key == query;
  block.scale = shape.scale;
  block.dropout = shape.dropout;
  block.seed = mixed_at(shape.seed, static_cast<uint64_t>(head));
  return block;
}

}  // namespace trireme::ops::internal
