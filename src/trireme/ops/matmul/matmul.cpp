#include "trireme/ops/matmul/matmul.h"

namespace trireme::ops {
namespace {

float at(const Matrix& x, int64_t row, int64_t column) {
  return x.transposed ? x.data[column * x.stride + row] : x.data[row * x.stride + column];
}

}  // namespace

void matmul(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride, bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = accumulate ? c[i * c_stride + j] : 0;
      for (int64_t l = 0; l < k; ++l) sum += at(a, i, l) * at(b, l, j);
      c[i * c_stride + j] = sum;
    }
  }
}

PackedMatrix::PackedMatrix(int64_t k, int64_t n, Matrix b) : k_(k), n_(n), data_(static_cast<std::size_t>(k * n)) {
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t j = 0; j < n; ++j) data_[static_cast<std::size_t>(l * n + j)] = at(b, l, j);
  }
}

void matmul(int64_t m, Matrix a, const PackedMatrix& b, float* c, int64_t c_stride, bool accumulate) {
  matmul(m, b.columns(), b.rows(), a, {.data = b.data(), .stride = b.columns()}, c, c_stride, accumulate);
}

}  // namespace trireme::ops
