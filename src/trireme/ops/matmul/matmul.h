// Products of f32 matrices, row-major. Run on the team of the calling thread (parallel.h); inside a body of parallel(),
// on that thread alone. The same bits on any number of threads.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/ops/aligned.h"
#include "trireme/ops/operator.h"

namespace trireme::ops {

// Rows × columns as the product sees them; `transposed`: element (i, j) lies at data[j · stride + i], else at
// data[i · stride + j].
struct Matrix {
  const float* data = nullptr;
  int64_t stride = 0;  // elements
  bool transposed = false;
};

// What is done to a result before it is stored.
struct Epilogue {
  const float* bias = nullptr;  // of n: added to every row; or null
  bool relu = false;            // after the bias, and after what was accumulated
};

// c = a · b, or c += a · b: a has m × k, b k × n, c m × n elements, whose rows are `c_stride` apart. c overlaps
// neither.
void matmul(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride, bool accumulate = false,
            const Epilogue& epilogue = {});

namespace internal {
struct MatmulKernels;
}

// A right-hand side in the order in which the kernel reads it, for products that use it again and again: recurrent
// weights, transformed filters. May be read by many threads.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(int64_t k, int64_t n, Matrix b);
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }
  const float* data() const { return data_.data(); }
  const internal::MatmulKernels* kernels() const { return kernels_; }  // those whose order it is

 private:
  int64_t k_ = 0;
  int64_t n_ = 0;
  const internal::MatmulKernels* kernels_ = nullptr;
  AlignedFloats data_;
};

void matmul(int64_t m, Matrix a, const PackedMatrix& b, float* c, int64_t c_stride, bool accumulate = false,
            const Epilogue& epilogue = {});

// `count` products of one size: the matrices of product i begin i · step elements after those of the first. Products
// run beside each other, so c's must not overlap.
struct BatchSteps {
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};
void matmul_batch(int64_t count, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride,
                  BatchSteps steps, bool accumulate = false);
// Product i uses b[i], all packed under one limit on the instruction set; steps.b is not read.
void matmul_batch(int64_t m, Matrix a, std::span<const PackedMatrix> b, float* c, int64_t c_stride, BatchSteps steps,
                  bool accumulate = false);

// One product, as an algorithm takes it.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Matrix a;
  Matrix b;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool accumulate = false;
  Epilogue epilogue;
};

class MatmulAlgorithm {
 public:
  virtual ~MatmulAlgorithm() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view what() const = 0;  // one line
  virtual Accuracy accuracy() const { return Accuracy::f32; }
  virtual bool takes(int64_t m, int64_t n, int64_t k) const = 0;
  virtual OpCost cost(int64_t m, int64_t n, int64_t k) const = 0;  // of a size that it takes
  virtual void run(const Product& product) const = 0;
};

// All of them, the reference first: it takes every size. matmul() is "tiled".
std::span<const MatmulAlgorithm* const> matmul_algorithms();
// Null where there is none of this name.
const MatmulAlgorithm* find_matmul_algorithm(std::string_view name);

}  // namespace trireme::ops
