// What attention does with a block of scores besides products, row by row.
#pragma once
#include <cstdint>

namespace trireme::ops::internal {

// A block of scores: rows are queries from `query` on, columns keys from `key` on, of one head.
struct ScoreBlock {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
  int64_t query = 0;
  int64_t key = 0;
  bool causal = false;
  float scale = 1;
  float dropout = 0;
  uint64_t seed = 0;  // of this head
};

// s: scores in, dropped weights e^(scale·(s − m)) out. m and l, of each row, are brought up to date; `shrink` is what
// the row's sums so far must be multiplied with.
void score_weights(const ScoreBlock& block, float* s, float* m, float* l, float* shrink);

// Row r of x times factor[r].
void scale_rows(int64_t rows, int64_t columns, float* x, int64_t stride, const float* factor);

// s: scores in, dropped weights out; d: dO·Vᵀ in, dS out. `sums` as forward kept them, `inner` is D.
void score_gradients(const ScoreBlock& block, float* s, float* d, const float* sums, const float* inner);

// Σ over columns of x ∘ y, of each row.
void row_products(int64_t rows, int64_t columns, const float* x, int64_t x_stride, const float* y, int64_t y_stride,
                  float* out);

}  // namespace trireme::ops::internal
