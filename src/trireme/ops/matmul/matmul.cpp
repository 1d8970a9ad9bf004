#include "trireme/ops/matmul/matmul.h"

#include <array>

#include "trireme/ops/matmul/algorithms.h"
#include "trireme/ops/matmul/tiled.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {

void matmul(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride, bool accumulate,
            const Epilogue& epilogue) {
  internal::tiled_product(internal::matmul_kernels(), {m, n, k, a, b, c, c_stride, accumulate, epilogue}, nullptr);
}

PackedMatrix::PackedMatrix(int64_t k, int64_t n, Matrix b)
    : k_(k), n_(n), kernels_(&internal::matmul_kernels()), data_(internal::packed_size(*kernels_, k, n)) {
  const int64_t panels = (n + kernels_->panel - 1) / kernels_->panel;
  internal::pack_panels(*kernels_, b, 0, k, n, 0, panels, data_.data());
}

void matmul(int64_t m, Matrix a, const PackedMatrix& b, float* c, int64_t c_stride, bool accumulate,
            const Epilogue& epilogue) {
  internal::tiled_product(*b.kernels(), {m, b.columns(), b.rows(), a, {}, c, c_stride, accumulate, epilogue}, b.data());
}

namespace {

// Whole products side by side where there are enough for all threads, else one after the other, each on all.
template <class One>
void each_product(int64_t count, One&& one) {
  const int64_t team = threads();
  if (count % team == 0 || count >= 4 * team) {
    parallel(count, [&](int64_t i) { one(i, true); });
  } else {
    for (int64_t i = 0; i < count; ++i) one(i, false);
  }
}

Matrix moved(Matrix x, int64_t by) {
  x.data += by;
  return x;
}

}  // namespace

void matmul_batch(int64_t count, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride,
                  BatchSteps steps, bool accumulate) {
  const auto& kernels = internal::matmul_kernels();
  each_product(count, [&](int64_t i, bool alone) {
    const Product product{m,        n,          k, moved(a, i * steps.a), moved(b, i * steps.b), c + i * steps.c,
                          c_stride, accumulate, {}};
    alone ? internal::tiled_product_alone(kernels, product, nullptr)
          : internal::tiled_product(kernels, product, nullptr);
  });
}

void matmul_batch(int64_t m, Matrix a, std::span<const PackedMatrix> b, float* c, int64_t c_stride, BatchSteps steps,
                  bool accumulate) {
  each_product(static_cast<int64_t>(b.size()), [&](int64_t i, bool alone) {
    const PackedMatrix& right = b[static_cast<std::size_t>(i)];
    const Product product{
        m, right.columns(), right.rows(), moved(a, i * steps.a), {}, c + i * steps.c, c_stride, accumulate, {}};
    alone ? internal::tiled_product_alone(*right.kernels(), product, right.data())
          : internal::tiled_product(*right.kernels(), product, right.data());
  });
}

std::span<const MatmulAlgorithm* const> matmul_algorithms() {
  static const std::array<const MatmulAlgorithm*, 3> all{&reference_matmul(), &tiled_matmul(), &bf16_matmul()};
  return all;
}

const MatmulAlgorithm* find_matmul_algorithm(std::string_view name) {
  for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
    if (algorithm->name() == name) return algorithm;
  }
  return nullptr;
}

}  // namespace trireme::ops
