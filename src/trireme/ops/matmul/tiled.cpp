// c = a · b by tiles that stay in registers (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
// 2008).
//
// Symbols: m, n, k the sizes; K rows of b at a time, N of its columns, M rows of a; tile and panel as in kernels.h.
//
//   for each N columns of b, for each K of its rows:      the packed part of b stays in the shared cache
//     pack that part of b, panel after panel              (not where b is packed already)
//     for each M rows of a:
//       pack M × K of a, tile after tile                  stays in the core's cache
//       for each panel of b, for each tile:               the panel stays in the first cache
//         the kernel adds K products to each element of the tile
//
// Threads share packing b, then take blocks of c. An element's sum is one chain per K rows, added in order, wherever
// its tile begins: the bits depend on k alone.
// Cost: m·n·k multiplications and additions; packing reads and writes b once, and a once per N columns.
#include "trireme/ops/matmul/tiled.h"

#include <algorithm>

#include "trireme/ops/parallel.h"

namespace trireme::ops::internal {
namespace {

constexpr int64_t kMostK = 320;
constexpr int64_t kMostN = 4096;
constexpr int64_t kMostM = 252;
// Below this many multiplications a second thread costs more than it brings.
constexpr double kAlone = 1 << 17;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `size` in equal parts of at most `most`, each but the last a multiple of `unit`.
int64_t part_size(int64_t size, int64_t most, int64_t unit) {
  const int64_t parts = ceil_div(size, most);
  return ceil_div(ceil_div(size, parts), unit) * unit;
}

AlignedFloats& scratch_a() {
  thread_local AlignedFloats floats;
  return floats;
}
AlignedFloats& scratch_b() {
  thread_local AlignedFloats floats;
  return floats;
}

// What is the same for all blocks of c that belong to one part of b.
struct Part {
  const MatmulKernels& kernels;
  const Product& product;
  Panels b;    // from row l0 and column j0 on
  int64_t l0;  // rows [l0, l0 + k) of b
  int64_t k;
  int64_t j0;
};

// Rows [i0, i0 + m) × columns [j, j + n) of c, j a multiple of the panel's width behind j0.
void block(const Part& part, int64_t i0, int64_t m, int64_t j, int64_t n) {
  const MatmulKernels& kernels = part.kernels;
  const Product& product = part.product;
  // Few rows: tiles two panels wide have more sums under way for each number of a.
  const int width = n <= kernels.lanes ? 0 : m <= kernels.wide_rows && n > kernels.panel ? 2 : 1;
  const int64_t columns = width == 0 ? kernels.lanes : width * kernels.panel;
  const int64_t tiles = ceil_div(m, width == 2 ? kernels.wide_rows : kernels.rows);
  const int64_t rows = m / tiles, longer = m % tiles;  // of a tile; how many have one more

  AlignedFloats& scratch = scratch_a();
  scratch.grow(m * part.k + kernels.panel);
  const Matrix& a = product.a;
  const auto begin = [&](int64_t tile) { return tile * rows + std::min(tile, longer); };
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t i = begin(tile), count = begin(tile + 1) - i;
    if (a.transposed) {
      kernels.copy(a.data + part.l0 * a.stride + i0 + i, a.stride, part.k, count, count, scratch.data() + i * part.k);
    } else {
      kernels.transpose(a.data + (i0 + i) * a.stride + part.l0, a.stride, part.k, count, count,
                        scratch.data() + i * part.k);
    }
  }
  const bool last = part.l0 + part.k == product.k;
  TileCall call;
  call.b_row = part.b.row;
  call.b_panel = part.b.panel;
  call.k = part.k;
  call.c_stride = product.c_stride;
  call.add = product.accumulate || part.l0 > 0;
  call.relu = last && product.epilogue.relu;
  for (int64_t from = j; from < j + n; from += columns) {
    call.b = part.b.data + (from - part.j0) / kernels.panel * part.b.panel;
    call.columns = std::min(columns, j + n - from);
    call.bias = last && product.epilogue.bias != nullptr ? product.epilogue.bias + from : nullptr;
    const int narrow = call.columns <= kernels.lanes ? 0 : call.columns <= kernels.panel ? 1 : 2;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t i = begin(tile), count = begin(tile + 1) - i;
      call.a = scratch.data() + i * part.k;
      call.c = product.c + (i0 + i) * product.c_stride + from;
      kernels.tile[std::min(width, narrow)][count](call);
    }
  }
}

// How c's blocks of one part of b are split: rows first, for each block packs its rows of a.
struct Split {
  int64_t rows = 0;
  int64_t columns = 0;
};
Split split(const MatmulKernels& kernels, int64_t m, int64_t n, int64_t team) {
  int64_t rows = part_size(m, kMostM, kernels.rows), columns = n;
  if (team > 1) {
    if (ceil_div(m, rows) < 2 * team && m >= n)
      rows = part_size(m, std::max(ceil_div(m, 2 * team), 2 * kernels.rows), kernels.rows);
    const int64_t blocks = ceil_div(m, rows);
    if (blocks < 2 * team)
      columns = part_size(n, std::max(ceil_div(n, ceil_div(2 * team, blocks)), 2 * kernels.panel), 2 * kernels.panel);
  }
  return {rows, columns};
}

template <class Body>
void each(int64_t parts, int64_t team, Body&& body) {
  if (team > 1) return parallel(parts, body);
  for (int64_t i = 0; i < parts; ++i) body(i);
}

void scale_nothing(const Product& product) {
  for (int64_t i = 0; i < product.m; ++i) {
    float* row = product.c + i * product.c_stride;
    for (int64_t j = 0; j < product.n; ++j) {
      if (!product.accumulate) row[j] = 0;
      if (product.epilogue.bias != nullptr) row[j] += product.epilogue.bias[j];
      if (product.epilogue.relu && row[j] < 0) row[j] = 0;
    }
  }
}

void run(const MatmulKernels& kernels, const Product& product, const float* packed, int64_t team) {
  const auto [m, n, k, a, b, c, c_stride, accumulate, epilogue] = product;
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_nothing(product);
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kAlone) team = 1;
  const int64_t k_part = part_size(k, kMostK, 8),
                n_part = packed != nullptr ? n : part_size(n, kMostN, 2 * kernels.panel);
  for (int64_t j0 = 0; j0 < n; j0 += n_part) {
    const int64_t columns = std::min(n_part, n - j0);
    for (int64_t l0 = 0; l0 < k; l0 += k_part) {
      const int64_t rows = std::min(k_part, k - l0);
      Panels panels{packed + l0 * kernels.panel, k * kernels.panel, kernels.panel};
      if (packed == nullptr) {
        AlignedFloats& scratch = scratch_b();
        scratch.grow(packed_size(kernels, rows, columns));
        float* out = scratch.data();
        const Matrix from{b.data + (b.transposed ? j0 * b.stride : j0), b.stride, b.transposed};
        const int64_t count = ceil_div(columns, kernels.panel), chunk = ceil_div(count, 4 * team);
        each(ceil_div(count, chunk), team, [&](int64_t i) {
          pack_panels(kernels, from, l0, rows, columns, i * chunk, std::min(count, (i + 1) * chunk), out);
        });
        panels = {out, rows * kernels.panel, kernels.panel};
      }
      const Part part{kernels, product, panels, l0, rows, j0};
      const Split blocks = split(kernels, m, columns, team);
      const int64_t down = ceil_div(m, blocks.rows), across = ceil_div(columns, blocks.columns);
      each(down * across, team, [&](int64_t i) {
        const int64_t i0 = i / across * blocks.rows, j = i % across * blocks.columns;
        block(part, i0, std::min(blocks.rows, m - i0), j0 + j, std::min(blocks.columns, columns - j));
      });
    }
  }
}

}  // namespace

int64_t packed_size(const MatmulKernels& kernels, int64_t k, int64_t n) {
  return ceil_div(n, kernels.panel) * kernels.panel * k + kernels.panel;
}

void pack_panels(const MatmulKernels& kernels, const Matrix& b, int64_t l0, int64_t k, int64_t n, int64_t first,
                 int64_t last, float* out) {
  for (int64_t panel = first; panel < last; ++panel) {
    const int64_t j = panel * kernels.panel, count = std::min(kernels.panel, n - j);
    float* to = out + panel * k * kernels.panel;
    if (b.transposed) {
      kernels.transpose(b.data + j * b.stride + l0, b.stride, k, count, kernels.panel, to);
    } else {
      kernels.copy(b.data + l0 * b.stride + j, b.stride, k, count, kernels.panel, to);
    }
  }
}

void tiled_product(const MatmulKernels& kernels, const Product& product, const float* packed) {
  run(kernels, product, packed, threads());
}

void tiled_product_alone(const MatmulKernels& kernels, const Product& product, const float* packed) {
  run(kernels, product, packed, 1);
}

}  // namespace trireme::ops::internal

namespace trireme::ops {
namespace {

class TiledMatmul final : public MatmulAlgorithm {
 public:
  std::string_view name() const override { return "tiled"; }
  std::string_view what() const override { return "tiles of c in registers, panels of a and b in the caches"; }
  bool takes(int64_t, int64_t, int64_t) const override { return true; }
  OpCost cost(int64_t m, int64_t n, int64_t k) const override {
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const int64_t k_parts = std::max<int64_t>(1, internal::ceil_div(k, internal::kMostK));
    return {.multiplications = products,
            .additions = products,
            .bytes = sizeof(float) * static_cast<double>(3 * (m * k + k * n) + (2 * k_parts - 1) * m * n),
            .workspace = 0};
  }
  void run(const Product& product) const override {
    internal::tiled_product(internal::matmul_kernels(), product, nullptr);
  }
};

}  // namespace

const MatmulAlgorithm& tiled_matmul() {
  static const TiledMatmul algorithm;
  return algorithm;
}

}  // namespace trireme::ops
