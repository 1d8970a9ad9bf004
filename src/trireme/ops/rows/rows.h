// Passes over rows, each read from memory once, forward and backward, [rows][columns]. On the team of the calling
// thread; the same bits on any number of threads.
#pragma once
#include <cstdint>

namespace trireme::ops {

// y = (x − mean) · rstd · gamma + beta, rstd = 1 / √(variance + epsilon), over each row; gamma and beta, of `columns`,
// may be null. mean and rstd, of `rows`, are kept for backward.
void layer_norm_forward(int64_t rows, int64_t columns, float epsilon, const float* x, const float* gamma,
                        const float* beta, float* y, float* mean, float* rstd);
// Overwrites d_x, d_gamma and d_beta, the latter two null where not wanted.
void layer_norm_backward(int64_t rows, int64_t columns, const float* x, const float* gamma, const float* mean,
                         const float* rstd, const float* d_y, float* d_x, float* d_gamma, float* d_beta);

// y = eˣ / Σ eˣ over each row; y may be x.
void softmax_forward(int64_t rows, int64_t columns, const float* x, float* y);
// d_x = y ∘ (d_y − Σ y ∘ d_y); d_x may be d_y.
void softmax_backward(int64_t rows, int64_t columns, const float* y, const float* d_y, float* d_x);

// Of a row x with target t: (1 − s)·(L − x(t)) + s·(L − mean of x), L = ln Σ eˣ, s the label smoothing; rows whose
// target is `ignored` count nothing.
struct CrossEntropy {
  int64_t rows = 0;
  int64_t classes = 0;
  float smoothing = 0;     // from 0 to 1
  int64_t ignored = -100;  // LibTorch's
};
struct CrossEntropyResult {
  double sum = 0;     // over the rows that count
  int64_t count = 0;  // of them; the mean is their quotient
};
// `sums`, of `rows`, keeps L for backward. Throws DataError naming the row whose target is no class.
CrossEntropyResult cross_entropy_forward(const CrossEntropy& shape, const float* x, const int64_t* targets,
                                         float* sums);
// d_x = scale times the gradient of the sum: the loss's own gradient over the count, where it is the mean. d_x may be
// x.
void cross_entropy_backward(const CrossEntropy& shape, const float* x, const int64_t* targets, const float* sums,
                            float scale, float* d_x);

// y's row i = table's row indices[i]. Throws DataError naming the index that the table, of `count` rows, lacks.
void embedding_forward(int64_t rows, int64_t columns, int64_t count, const float* table, const int64_t* indices,
                       float* y);
// d_table's row r = Σ of d_y's rows whose index is r, in their order; zeros elsewhere, and at `padding`.
void embedding_backward(int64_t rows, int64_t columns, int64_t count, const int64_t* indices, const float* d_y,
                        float* d_table, int64_t padding = -1);

}  // namespace trireme::ops
