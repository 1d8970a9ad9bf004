// Products of f32 matrices, row-major. Run on the team of the calling thread (parallel.h); inside a body of parallel(),
// on that thread alone.
#pragma once
#include <cstdint>
#include <vector>

namespace trireme::ops {

// Rows × columns as the product sees them; `transposed`: element (i, j) lies at data[j · stride + i], else at
// data[i · stride + j].
struct Matrix {
  const float* data = nullptr;
  int64_t stride = 0;  // elements
  bool transposed = false;
};

// c = a · b, or c += a · b: a has m × k, b k × n, c m × n elements, whose rows are `c_stride` apart. c overlaps
// neither.
void matmul(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride, bool accumulate = false);

// A right-hand side in the order in which the kernel reads it, for products that use it again and again: recurrent
// weights, transformed filters.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(int64_t k, int64_t n, Matrix b);
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }
  const float* data() const { return data_.data(); }

 private:
  int64_t k_ = 0;
  int64_t n_ = 0;
  std::vector<float> data_;
};

void matmul(int64_t m, Matrix a, const PackedMatrix& b, float* c, int64_t c_stride, bool accumulate = false);

}  // namespace trireme::ops
