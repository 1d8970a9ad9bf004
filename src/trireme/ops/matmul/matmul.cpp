#include "trireme/ops/matmul/matmul.h"

#include <algorithm>
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

// Rows [from, from + rows) of a product.
Product rows_of(Product product, int64_t from, int64_t rows) {
  product.a.data += product.a.transposed ? from : from * product.a.stride;
  product.c += from * product.c_stride;
  product.m = rows;
  return product;
}

Matrix moved(Matrix x, int64_t by) {
  x.data += by;
  return x;
}

// Products side by side, each on one thread; where they are too few for all threads to end together, each in parts of
// its rows. one(i) is product i, packed(i) its packed b or null.
template <class One, class Packed>
void each_product(int64_t count, int64_t m, const internal::MatmulKernels& kernels, One&& one, Packed&& packed) {
  constexpr int64_t kFewestRows = 56;
  const int64_t team = threads();
  const bool enough = count == 0 || count % team == 0 || count >= 4 * team;
  const int64_t shares = enough ? 1 : std::clamp<int64_t>(m / kFewestRows, 1, (4 * team + count - 1) / count);
  parallel(count * shares, [&](int64_t part) {
    const int64_t i = part / shares, share = part % shares, from = m * share / shares;
    internal::tiled_product_alone(kernels, rows_of(one(i), from, m * (share + 1) / shares - from), packed(i));
  });
}

}  // namespace

void matmul_batch(int64_t count, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float* c, int64_t c_stride,
                  BatchSteps steps, bool accumulate) {
  each_product(
      count, m, internal::matmul_kernels(),
      [&](int64_t i) {
        return Product{m,        n,          k, moved(a, i * steps.a), moved(b, i * steps.b), c + i * steps.c,
                       c_stride, accumulate, {}};
      },
      [](int64_t) { return nullptr; });
}

void matmul_batch(int64_t m, Matrix a, std::span<const PackedMatrix> b, float* c, int64_t c_stride, BatchSteps steps,
                  bool accumulate) {
  if (b.empty()) return;
  const auto right = [&](int64_t i) -> const PackedMatrix& { return b[static_cast<std::size_t>(i)]; };
  each_product(
      static_cast<int64_t>(b.size()), m, *b.front().kernels(),
      [&](int64_t i) {
        return Product{m,  right(i).columns(), right(i).rows(), moved(a, i * steps.a),
                       {}, c + i * steps.c,    c_stride,        accumulate,
                       {}};
      },
      [&](int64_t i) { return right(i).data(); });
}

std::span<const MatmulAlgorithm* const> matmul_algorithms() {
  static const std::array<const MatmulAlgorithm*, 4> all{&reference_matmul(), &tiled_matmul(), &bf16_matmul(),
                                                         &amx_matmul()};
  return all;
}

const MatmulAlgorithm* find_matmul_algorithm(std::string_view name) {
  for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
    if (algorithm->name() == name) return algorithm;
  }
  return nullptr;
}

}  // namespace trireme::ops
