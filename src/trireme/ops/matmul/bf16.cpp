// c = a · b with the factors rounded to bf16 and sums in f32: by pairs in vectors twice the products of f32 a cycle, by
// tile registers sixteen times as many. The loops of tiled.cpp with two differences: all of b is packed, in half the
// bytes, and packing rounds.
//
// Symbols: tile, strip, line as in bf16_kernels.h, two strips a panel; K rows of b at a time.
//
//   pack b, strip after strip                    threads take strips
//   for each block of rows of c:                 threads take blocks
//     for each K of k:
//       pack the block's rows of a, tile after tile
//       for each panel of b: the kernel adds K products to each element of the block's tiles
//
// An element's sum is one chain per K, added in order: the bits depend on k alone.
// Cost: m·n·k multiplications and additions; b is read, rounded and written once, a once per block.
#include "trireme/ops/matmul/bf16.h"

#include <algorithm>
#include <vector>

#include "trireme/ops/matmul/algorithms.h"
#include "trireme/ops/matmul/tiled.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace internal {
namespace {

constexpr int64_t kBf16Depth = 512;  // K, of whole lines
constexpr int64_t kBf16Block = 224;  // rows of a block: whole tiles of either kernel

int64_t lines_of(int64_t k) { return k / kBf16Depth * bf16_lines(kBf16Depth) + bf16_lines(k % kBf16Depth); }

// The rows in which the matrix lies: those the product sees, or its columns.
std::vector<const float*> lying_rows(const Matrix& x, int64_t rows) {
  std::vector<const float*> all(static_cast<std::size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) all[static_cast<std::size_t>(i)] = x.data + i * x.stride;
  return all;
}

struct PackedStrips {
  const uint32_t* data = nullptr;
  int64_t strip = 0;  // pairs from one to the next
};

void pack_strip(const Bf16Kernel& kernel, const Product& product, const float* const* rows, int64_t j, uint32_t* out) {
  const int64_t columns = std::min(kBf16Strip, product.n - j);
  for (int64_t l0 = 0; l0 < product.k; l0 += kBf16Depth) {
    const int64_t depth = std::min(kBf16Depth, product.k - l0), lines = bf16_lines(depth);
    if (product.b.transposed) {
      bf16_pack_strip_of_columns(*kernel.packing, rows + j, l0, depth, columns, lines, out);
    } else {
      kernel.packing->strip(rows + l0, depth, j, columns, lines, out);
    }
    out += lines * kBf16Line * kBf16Strip;
  }
}

// Rows [i0, i0 + m) of c; `rows` are those in which a lies.
void compute(const Bf16Kernel& kernel, const Product& product, const PackedStrips& b, const float* const* rows,
             int64_t i0, int64_t m) {
  thread_local AlignedFloats packed;  // pairs lie in floats' places
  packed.grow(m * bf16_lines(std::min(product.k, kBf16Depth)) * kBf16Line);
  auto* const tiles_of_a = reinterpret_cast<uint32_t*>(packed.data());
  std::vector<float*> c(static_cast<std::size_t>(m));
  for (int64_t i = 0; i < m; ++i) c[static_cast<std::size_t>(i)] = product.c + (i0 + i) * product.c_stride;
  const Bf16Tiles tiles(m, kernel.rows);
  int64_t line = 0;
  for (int64_t l0 = 0; l0 < product.k; l0 += kBf16Depth) {
    const int64_t depth = std::min(kBf16Depth, product.k - l0), lines = bf16_lines(depth);
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      const int64_t i = i0 + tiles.begin(tile), count = tiles.size(tile);
      uint32_t* const to = tiles_of_a + tiles.begin(tile) * lines * kBf16Line;
      if (product.a.transposed) {
        bf16_pack_tile_of_columns(*kernel.packing, rows + l0, depth, i, count, lines, to);
      } else {
        kernel.packing->tile({rows + i, &l0, 1, depth}, count, lines, to);
      }
    }
    const bool last = l0 + depth == product.k;
    for (int64_t j = 0; j < product.n; j += kBf16Panel) {
      kernel.multiply({.a = tiles_of_a,
                       .rows = m,
                       .lines = lines,
                       .b = b.data + j / kBf16Strip * b.strip + line * kBf16Line * kBf16Strip,
                       .b_strip = b.strip,
                       .c = c.data(),
                       .c_offset = j,
                       .columns = std::min(kBf16Panel, product.n - j),
                       .add = product.accumulate || l0 > 0,
                       .bias = last && product.epilogue.bias != nullptr ? product.epilogue.bias + j : nullptr,
                       .relu = last && product.epilogue.relu});
    }
    line += lines;
  }
}

}  // namespace

void bf16_product(const Bf16Kernel& kernel, const Product& product) {
  const int64_t m = product.m, n = product.n, k = product.k;
  if (m == 0 || n == 0 || k == 0) return tiled_matmul().run(product);
  thread_local AlignedFloats right;
  const int64_t strip = lines_of(k) * kBf16Line * kBf16Strip;
  right.grow(bf16_strips(n) * strip);
  auto* const b = reinterpret_cast<uint32_t*>(right.data());
  const auto rows_of_a = lying_rows(product.a, product.a.transposed ? k : m);
  const auto rows_of_b = lying_rows(product.b, product.b.transposed ? n : k);
  // Below half a million products a second thread costs more than it brings.
  const bool alone = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < (1 << 19);
  const auto each = [&](int64_t parts, auto&& body) {
    if (!alone) return parallel(parts, body);
    for (int64_t part = 0; part < parts; ++part) body(part);
  };
  each(bf16_strips(n),
       [&](int64_t it) { pack_strip(kernel, product, rows_of_b.data(), it * kBf16Strip, b + it * strip); });
  const int64_t blocks = std::max((m + kBf16Block - 1) / kBf16Block, alone ? 1 : std::min<int64_t>(threads(), m));
  each(blocks, [&](int64_t block) {
    const int64_t i0 = m * block / blocks;
    compute(kernel, product, {b, strip}, rows_of_a.data(), i0, m * (block + 1) / blocks - i0);
  });
}

namespace {

class Bf16Matmul final : public MatmulAlgorithm {
 public:
  Bf16Matmul(std::string_view name, std::string_view what, bool (*has)(), const Bf16Kernel& (*kernel)())
      : name_(name), what_(what), has_(has), kernel_(kernel) {}
  std::string_view name() const override { return name_; }
  std::string_view what() const override { return what_; }
  Accuracy accuracy() const override { return Accuracy::bf16; }
  bool takes(int64_t, int64_t, int64_t) const override { return has_(); }
  OpCost cost(int64_t m, int64_t n, int64_t k) const override {
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const int64_t k_parts = std::max<int64_t>(1, (k + kBf16Depth - 1) / kBf16Depth);
    return {.multiplications = products,
            .additions = products,
            .bytes = sizeof(float) * static_cast<double>(2 * (m * k + k * n) + (2 * k_parts - 1) * m * n),
            .workspace = 0};
  }
  void run(const Product& product) const override { bf16_product(kernel_(), product); }

 private:
  std::string_view name_, what_;
  bool (*has_)();
  const Bf16Kernel& (*kernel_)();
};

}  // namespace
}  // namespace internal

const MatmulAlgorithm& bf16_matmul() {
  static const internal::Bf16Matmul algorithm("bf16", "factors rounded to bf16, two products an instruction's lane",
                                              internal::has_bf16, internal::bf16_vector_kernel);
  return algorithm;
}

const MatmulAlgorithm& amx_matmul() {
  static const internal::Bf16Matmul algorithm("amx", "factors rounded to bf16, in tile registers (AMX)",
                                              internal::has_amx, internal::bf16_amx_kernel);
  return algorithm;
}

}  // namespace trireme::ops
