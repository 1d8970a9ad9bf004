// c = a · b with the factors rounded to bf16 and sums in f32: each instruction multiplies and adds pairs, twice the
// products of f32 a cycle. The loops of tiled.cpp with two differences: all of b is packed, in half the bytes, and
// packing rounds.
//
// Symbols: tile, panel and pair as in bf16_kernels.h; K rows of b at a time.
//
//   pack b, panel after panel                    threads take panels
//   for each block of rows of c:                 threads take blocks
//     for each K of k:
//       pack the block's rows of a, tile after tile
//       for each panel of b, for each tile: the kernel adds K products to each element
//
// An element's sum is one chain per K, added in order: the bits depend on k alone.
// Cost: m·n·k multiplications and additions; b is read, rounded and written once, a once per panel block.
#include <algorithm>

#include "trireme/ops/matmul/algorithms.h"
#include "trireme/ops/matmul/bf16_kernels.h"
#include "trireme/ops/matmul/tiled.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace {

using internal::Bf16Tile;
using internal::kBf16Panel;
using internal::kBf16Rows;

constexpr int64_t kBf16Depth = 1024;           // K, even
constexpr int64_t kBf16Block = 8 * kBf16Rows;  // rows of a block

int64_t pairs_of(int64_t k) { return (k + 1) / 2; }

// Pairs lie in floats' places: both have four bytes.
uint32_t* as_pairs(AlignedFloats& floats) { return reinterpret_cast<uint32_t*>(floats.data()); }

// Rows [l0, l0 + k) × columns [i, i + count) of x, `width` of them a row of pairs; x is as its columns see it.
void pack_pairs(const Matrix& x, int64_t l0, int64_t k, int64_t i, int64_t count, int64_t width, AlignedFloats& scratch,
                uint32_t* out) {
  const auto& kernels = internal::matmul_kernels();
  scratch.grow(k * width + kernels.panel);
  if (x.transposed) {
    kernels.transpose(x.data + i * x.stride + l0, x.stride, k, count, width, scratch.data());
  } else {
    kernels.copy(x.data + l0 * x.stride + i, x.stride, k, count, width, scratch.data());
  }
  internal::bf16_pairs(scratch.data(), k, width, out);
}

void bf16_block(const Product& product, const uint32_t* b, int64_t i0, int64_t m) {
  thread_local AlignedFloats packed, scratch;
  const int64_t k = product.k, tiles = (m + kBf16Rows - 1) / kBf16Rows, rows = m / tiles, longer = m % tiles;
  const auto begin = [&](int64_t tile) { return tile * rows + std::min(tile, longer); };
  packed.grow(m * pairs_of(std::min(k, kBf16Depth)) + kBf16Panel);
  // Rows of a are columns of its transpose.
  const Matrix columns{product.a.data, product.a.stride, !product.a.transposed};
  for (int64_t l0 = 0; l0 < k; l0 += kBf16Depth) {
    const int64_t depth = std::min(kBf16Depth, k - l0), pairs = pairs_of(depth);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = begin(tile), count = begin(tile + 1) - first;
      pack_pairs(columns, l0, depth, i0 + first, count, count, scratch, as_pairs(packed) + first * pairs);
    }
    const bool last = l0 + depth == k;
    for (int64_t j = 0; j < product.n; j += kBf16Panel) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t first = begin(tile);
        Bf16Tile call;
        call.a = as_pairs(packed) + first * pairs;
        call.b = b + j * pairs_of(k) + l0 / 2 * kBf16Panel;
        call.pairs = pairs;
        call.c = product.c + (i0 + first) * product.c_stride + j;
        call.c_stride = product.c_stride;
        call.columns = std::min(kBf16Panel, product.n - j);
        call.add = product.accumulate || l0 > 0;
        call.bias = last && product.epilogue.bias != nullptr ? product.epilogue.bias + j : nullptr;
        call.relu = last && product.epilogue.relu;
        internal::bf16_tile(begin(tile + 1) - first, call);
      }
    }
  }
}

class Bf16Matmul final : public MatmulAlgorithm {
 public:
  std::string_view name() const override { return "bf16"; }
  std::string_view what() const override { return "factors rounded to bf16, two products an instruction's lane"; }
  Accuracy accuracy() const override { return Accuracy::bf16; }
  bool takes(int64_t, int64_t, int64_t) const override { return internal::has_bf16(); }
  OpCost cost(int64_t m, int64_t n, int64_t k) const override {
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const int64_t k_parts = std::max<int64_t>(1, (k + kBf16Depth - 1) / kBf16Depth);
    return {.multiplications = products,
            .additions = products,
            .bytes = sizeof(float) * static_cast<double>(2 * (m * k + k * n) + (2 * k_parts - 1) * m * n),
            .workspace = 0};
  }
  void run(const Product& product) const override {
    const int64_t m = product.m, n = product.n, k = product.k;
    if (m == 0 || n == 0 || k == 0) return tiled_matmul().run(product);
    const int64_t panels = (n + kBf16Panel - 1) / kBf16Panel, pairs = pairs_of(k);
    thread_local AlignedFloats right;
    right.grow(panels * kBf16Panel * pairs + kBf16Panel);
    uint32_t* b = as_pairs(right);
    // Below half a million products a second thread costs more than it brings.
    const bool alone = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < (1 << 19);
    const auto each = [&](int64_t parts, auto&& body) {
      if (!alone) return parallel(parts, body);
      for (int64_t part = 0; part < parts; ++part) body(part);
    };
    each(panels, [&](int64_t panel) {
      thread_local AlignedFloats scratch;
      const int64_t j = panel * kBf16Panel;
      for (int64_t l0 = 0; l0 < k; l0 += kBf16Depth) {
        pack_pairs(product.b, l0, std::min(kBf16Depth, k - l0), j, std::min(kBf16Panel, n - j), kBf16Panel, scratch,
                   b + j * pairs + l0 / 2 * kBf16Panel);
      }
    });
    const int64_t blocks = std::max((m + kBf16Block - 1) / kBf16Block, alone ? 1 : std::min<int64_t>(threads(), m));
    each(blocks, [&](int64_t block) {
      const int64_t i0 = m * block / blocks;
      bf16_block(product, b, i0, m * (block + 1) / blocks - i0);
    });
  }
};

}  // namespace

const MatmulAlgorithm& bf16_matmul() {
  static const Bf16Matmul algorithm;
  return algorithm;
}

}  // namespace trireme::ops
