// One row at a time; rows.cpp splits them over cores.
#pragma once
#include <cstdint>

namespace trireme::ops::internal {

void layer_norm_row(int64_t n, float epsilon, const float* x, const float* gamma, const float* beta, float* y,
                    float* mean, float* rstd);
// Adds to d_gamma and d_beta, unless null.
void layer_norm_row_backward(int64_t n, const float* x, const float* gamma, float mean, float rstd, const float* d_y,
                             float* d_x, float* d_gamma, float* d_beta);
void softmax_row(int64_t n, const float* x, float* y);
void softmax_row_backward(int64_t n, const float* y, const float* d_y, float* d_x);
// ln Σ eˣ; the sum of x too.
struct RowSums {
  float log_exp;
  float plain;
};
RowSums row_sums(int64_t n, const float* x);
// y = a·e^(x − offset) + b
void row_exponentials(int64_t n, const float* x, float offset, float a, float b, float* y);
void add_row(int64_t n, const float* x, float* y);

}  // namespace trireme::ops::internal
