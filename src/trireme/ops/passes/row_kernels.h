// The inner loops of batch_norm.cpp, on rows whose width is a multiple of 16 floats: the caller lays rows of fewer
// channels together.
#pragma once
#include <cstdint>

namespace trireme::ops::rows {

inline constexpr int64_t kLane = 16;  // widths are multiples of it

// sum[c] += Σ (x − base), square[c] += Σ (x − base)², over `count` rows of `width`.
void add_moments(const float* x, const float* base, int64_t count, int64_t width, float* sum, float* square);
// sum[c] += Σ g, product[c] += Σ g · (x − mean); g is the gradient, where `output` is not null only where that is > 0.
void add_gradients(const float* gradient, const float* output, const float* x, const float* mean, int64_t count,
                   int64_t width, float* sum, float* product);
void normalize(const float* x, const float* scale, const float* shift, const float* add, bool relu, int64_t count,
               int64_t width, float* y);
// What is the same for every row: see NormSlopes.
struct Slopes {
  const float *scale, *mean, *slope, *offset;
};
void backward(const float* gradient, const float* output, const float* x, const Slopes& by, int64_t count,
              int64_t width, float* dx, float* add);

// sum[c] += Σ g; `masked`, if not null, becomes g.
void mask_and_add(const float* gradient, const float* output, int64_t count, int64_t width, float* masked, float* sum);

}  // namespace trireme::ops::rows
