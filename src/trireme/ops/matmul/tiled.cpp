// c = a · b by tiles that stay in registers (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
// 2008).
//
// Symbols: m, n, k the sizes; K rows of b at a time, N of its columns, M rows of a; tile and panel as in kernels.h.
//
//   for each N columns of b:
//     pack them, panel after panel                        stays in the shared cache (not where b is packed already)
//     for each block of c, M rows × some of the columns:  threads take these
//       for each K of k:
//         pack M × K of a, tile after tile                stays in the core's cache
//         for each panel of b, for each tile:             the panel stays in the first cache
//           the kernel adds K products to each element of the tile
//
// Where M holds all of m, b is used once: a few panels at a time are packed where they are used and never leave the
// core's cache. Where n is a few panels, rows of a are used as they lie.
// Where b is given transposed, its rows along k, and a has a few panels' rows, b's rows take the place of a's: they are
// used as they lie and read once; a is packed as the panels, and what comes out is transposed as it is stored.
// An element's sum is one chain per K, added in order, wherever its tile begins: the bits depend on k alone.
// Cost: m·n·k multiplications and additions; packing reads and writes b once, and a once per block.
#include "trireme/ops/matmul/tiled.h"

#include <algorithm>

#include "trireme/ops/matmul/algorithms.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace internal {
namespace {

constexpr int64_t kMostK = 512;
constexpr int64_t kMostM = 252;
constexpr int64_t kMostPacked = 1 << 21;  // floats of b
constexpr int64_t kFar = 1 << 17;         // floats of b that are not expected in the core's cache
// Floats of b packed where they are used; more where they come from far, in longer pieces of rows.
constexpr int64_t kPackedTogether = 1 << 16;
constexpr int64_t kPackedFar = 1 << 17;
constexpr int64_t kLineFloats = 16;
// Below this many multiplications a second thread costs more than it brings.
constexpr double kAlone = 1 << 19;
// Rows this far apart share a set of the first cache: too many at a time push each other out.
constexpr int64_t kSameSet = 4096 / sizeof(float);

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
AlignedFloats& scratch_panels() {
  thread_local AlignedFloats floats;
  return floats;
}
AlignedFloats& scratch_b() {
  thread_local AlignedFloats floats;
  return floats;
}

// Rows of c in tiles as equal as can be.
struct Tiles {
  int64_t count;
  int64_t rows, longer;  // of a tile, and how many tiles have one more
  int64_t begin(int64_t tile) const { return tile * rows + std::min(tile, longer); }
  int64_t size(int64_t tile) const { return rows + (tile < longer ? 1 : 0); }
};
Tiles make_tiles(int64_t m, int64_t most) {
  const int64_t count = ceil_div(m, most);
  return {count, m / count, m % count};
}

// Packs columns [l0, l0 + k) of a's rows from i0 on, tile after tile.
void pack_tiles(const MatmulKernels& kernels, const Matrix& a, int64_t i0, const Tiles& tiles, int64_t l0, int64_t k,
                float* out) {
  if (a.transposed) {
    return kernels.copy_tiles(a.data + l0 * a.stride + i0, a.stride, k, tiles.count, tiles.rows, tiles.longer, out);
  }
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t i = i0 + tiles.begin(tile), rows = tiles.size(tile);
    kernels.transpose(a.data + i * a.stride + l0, a.stride, k, rows, rows, out + tiles.begin(tile) * k);
  }
}

// Rows [i0, i0 + m) × columns [j0, j0 + n) of c.
struct Block {
  int64_t i0, m, j0, n;
};
// b's panels from column `from` on, over all of k; null: packed where they are used.
struct PackedB {
  const float* data = nullptr;
  int64_t from = 0;
};

// The lines of b's rows [l0, l0 + k) and columns [j, j + n).
ReadAhead lines_of(const Matrix& b, int64_t l0, int64_t k, int64_t j, int64_t n) {
  const float* from = b.transposed ? b.data + j * b.stride + l0 : b.data + l0 * b.stride + j;
  return {reinterpret_cast<const char*>(from), b.stride * static_cast<int64_t>(sizeof(float)),
          ceil_div(b.transposed ? k : n, kLineFloats)};
}

void compute(const MatmulKernels& kernels, const Product& product, const Block& block, const PackedB& packed) {
  const int64_t panel = kernels.panel, k = product.k;
  const Matrix &a = product.a, &b = product.b;
  // Few rows: tiles two panels wide have more sums under way for each number of a.
  const int width = block.n <= kernels.lanes ? 0 : block.m <= kernels.wide_rows && block.n > panel ? 2 : 1;
  const int64_t columns = width == 0 ? kernels.lanes : width * panel;
  const Tiles tiles = make_tiles(block.m, width == 2 ? kernels.wide_rows : kernels.rows);
  const bool in_place = width < 2 && block.n <= 4 * panel && !a.transposed && a.stride % kSameSet != 0;
  const int64_t k_part = part_size(k, kMostK, 8);
  const bool far = packed.data == nullptr && block.n * k >= kFar;
  const int64_t most = far ? kPackedFar : kPackedTogether;
  const int64_t together = std::max<int64_t>(columns, most / k_part / (2 * panel) * (2 * panel));
  if (!in_place) scratch_a().grow(block.m * k_part + panel);
  if (packed.data == nullptr) scratch_panels().grow(packed_size(kernels, k_part, std::min(block.n, together)));
  float* a_tiles = scratch_a().data();
  // While what is packed is used, what is packed next comes from memory.
  ReadAhead ahead;
  int64_t ahead_lines = 0;  // left to ask for

  for (int64_t l0 = 0; l0 < k; l0 += k_part) {
    const int64_t depth = std::min(k_part, k - l0);
    if (!in_place) pack_tiles(kernels, a, block.i0, tiles, l0, depth, a_tiles);
    const bool last = l0 + depth == k;
    TileCall call;
    call.a_row = a.stride;
    call.b_panel = (packed.data == nullptr ? depth : k) * panel;
    call.k = depth;
    call.c_stride = product.c_stride;
    call.add = product.accumulate || l0 > 0;
    call.relu = last && product.epilogue.relu;
    int64_t here = 0, packed_to = block.j0;  // the first and the last column of scratch_panels
    for (int64_t j = block.j0; j < block.j0 + block.n; j += columns) {
      call.columns = std::min(columns, block.j0 + block.n - j);
      if (packed.data != nullptr) {
        call.b = packed.data + (j - packed.from) * k + l0 * panel;
      } else {
        if (j == packed_to) {
          here = j;
          packed_to = std::min(j + together, block.j0 + block.n);
          const Matrix from{b.data + (b.transposed ? j * b.stride : j), b.stride, b.transposed};
          pack_panels(kernels, from, l0, depth, packed_to - j, 0, ceil_div(packed_to - j, panel),
                      scratch_panels().data());
          if (far) {
            const bool turn = packed_to == block.j0 + block.n;
            const int64_t next_l = turn ? l0 + depth : l0, next_j = turn ? block.j0 : packed_to;
            const int64_t next_k = std::min(k_part, k - next_l),
                          next_n = std::min(together, block.j0 + block.n - next_j);
            ahead = lines_of(b, next_l, next_k, next_j, next_n);
            ahead_lines = ahead.lines * (b.transposed ? next_n : next_k);
          }
        }
        call.b = scratch_panels().data() + (j - here) * depth;
      }
      call.bias = last && product.epilogue.bias != nullptr ? product.epilogue.bias + j : nullptr;
      const int narrow = std::min(width, call.columns <= kernels.lanes ? 0 : call.columns <= panel ? 1 : 2);
      for (int64_t tile = 0; tile < tiles.count; ++tile) {
        const int64_t i = block.i0 + tiles.begin(tile), rows = tiles.size(tile);
        call.a = in_place ? a.data + i * a.stride + l0 : a_tiles + tiles.begin(tile) * depth;
        call.c = product.c + i * product.c_stride + j;
        call.ahead = ahead_lines > 0 ? &ahead : nullptr;
        ahead_lines -= depth / 2;
        (in_place ? kernels.tile_in_place : kernels.tile)[narrow][rows](call);
      }
    }
  }
}

// The size of c's blocks: split by rows first, for each block packs its rows of a.
struct BlockSize {
  int64_t rows, columns;
};
BlockSize block_size(const MatmulKernels& kernels, int64_t m, int64_t n, int64_t team) {
  int64_t rows = part_size(m, kMostM, kernels.rows), columns = n;
  if (team > 1) {
    const int64_t parts = 2 * team, unit = 2 * kernels.panel;
    if (ceil_div(m, rows) < parts && m >= n)
      rows = part_size(m, std::max(ceil_div(m, parts), 2 * kernels.rows), kernels.rows);
    const int64_t down = ceil_div(m, rows);
    if (down < parts) columns = part_size(n, std::max(ceil_div(n, ceil_div(parts, down)), unit), unit);
  }
  return {rows, columns};
}

// Whether product can be computed with its sides exchanged: b far away, and a's rows fill panels.
bool turns(const MatmulKernels& kernels, const Product& product) {
  const int64_t wide = 2 * kernels.panel, padded = ceil_div(product.m, wide) * wide;
  return product.b.transposed && !product.accumulate && product.k >= kMostK && product.n * product.k >= kFar &&
         product.m <= 2 * wide && 10 * product.m >= 9 * padded;
}

template <class Body>
void each(int64_t parts, int64_t team, Body&& body) {
  if (team > 1) return parallel(parts, body);
  for (int64_t i = 0; i < parts; ++i) body(i);
}

// Rows [i0, i0 + rows) of bᵀ by `panels`, all of a.
void compute_turned(const MatmulKernels& kernels, const Product& product, int64_t i0, int64_t rows,
                    const float* panels) {
  const int64_t m = product.m, k = product.k, wide = 2 * kernels.panel, stride = ceil_div(m, wide) * wide;
  const Matrix& b = product.b;
  const Tiles tiles = make_tiles(rows, kernels.wide_rows);
  const int64_t k_part = part_size(k, kMostK, 8);
  AlignedFloats& sums = scratch_a();
  sums.grow(rows * stride);
  ReadAhead ahead;
  TileCall call;
  call.a_row = b.stride;
  call.b_panel = k * kernels.panel;
  call.c_stride = stride;
  for (int64_t l0 = 0; l0 < k; l0 += k_part) {
    call.k = std::min(k_part, k - l0);
    call.add = l0 > 0;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      const int64_t first = tiles.begin(tile), next = i0 + tiles.begin(tile + 1);
      call.a = b.data + (i0 + first) * b.stride + l0;
      if (next < product.n) ahead = lines_of(b, l0, call.k, next, kernels.wide_rows);
      call.ahead = next < product.n ? &ahead : nullptr;
      for (int64_t j = 0; j < m; j += wide) {
        call.b = panels + j * k + l0 * kernels.panel;
        call.columns = std::min(wide, m - j);
        call.c = sums.data() + first * stride + j;
        const int narrow = call.columns <= kernels.lanes ? 0 : call.columns <= kernels.panel ? 1 : 2;
        kernels.tile_in_place[narrow][tiles.size(tile)](call);
      }
    }
  }
  const Epilogue& epilogue = product.epilogue;
  kernels.turn({sums.data(), stride, m, rows, product.c + i0, product.c_stride,
                epilogue.bias == nullptr ? nullptr : epilogue.bias + i0, epilogue.relu});
}

void without_products(const Product& product) {
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
  const int64_t m = product.m, n = product.n, k = product.k;
  if (m == 0 || n == 0) return;
  if (k == 0) return without_products(product);
  if (n == 1 && m > 1 && packed == nullptr && product.c_stride == 1 && product.epilogue.bias == nullptr) {
    // A column is a row that fills vectors.
    Product row = product;
    row.m = 1, row.n = m, row.c_stride = m;
    row.a = {product.b.data, product.b.stride, !product.b.transposed};
    row.b = {product.a.data, product.a.stride, !product.a.transposed};
    return run(kernels, row, nullptr, team);
  }
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kAlone) team = 1;
  const auto blocks = [&](int64_t from, int64_t columns, const PackedB& right) {
    const BlockSize size = block_size(kernels, m, columns, team);
    const int64_t down = ceil_div(m, size.rows), across = ceil_div(columns, size.columns);
    each(down * across, team, [&](int64_t part) {
      const int64_t i = part / across * size.rows, j = part % across * size.columns;
      compute(kernels, product, {i, std::min(size.rows, m - i), from + j, std::min(size.columns, columns - j)}, right);
    });
  };
  if (packed == nullptr && turns(kernels, product)) {
    const Matrix right{product.a.data, product.a.stride, !product.a.transposed};
    const int64_t panels = ceil_div(m, kernels.panel), rows = 8 * kernels.wide_rows;
    AlignedFloats& scratch = scratch_b();
    scratch.grow(packed_size(kernels, k, panels * kernels.panel + kernels.panel));
    float* out = scratch.data();
    each(panels, team, [&](int64_t panel) { pack_panels(kernels, right, 0, k, m, panel, panel + 1, out); });
    return each(ceil_div(n, rows), team, [&](int64_t part) {
      compute_turned(kernels, product, part * rows, std::min(rows, n - part * rows), out);
    });
  }
  if (packed != nullptr || m <= kMostM) return blocks(0, n, {packed, 0});

  const int64_t unit = 2 * kernels.panel, n_part = part_size(n, std::max(kMostPacked / k, unit), unit);
  AlignedFloats& scratch = scratch_b();
  scratch.grow(packed_size(kernels, k, std::min(n, n_part)));
  float* out = scratch.data();
  for (int64_t from = 0; from < n; from += n_part) {
    const int64_t columns = std::min(n_part, n - from);
    const Matrix& b = product.b;
    const Matrix right{b.data + (b.transposed ? from * b.stride : from), b.stride, b.transposed};
    const int64_t count = ceil_div(columns, kernels.panel), chunk = ceil_div(count, 4 * team);
    each(ceil_div(count, chunk), team, [&](int64_t part) {
      pack_panels(kernels, right, 0, k, columns, part * chunk, std::min(count, (part + 1) * chunk), out);
    });
    blocks(from, columns, {out, from});
  }
}

}  // namespace

int64_t packed_size(const MatmulKernels& kernels, int64_t k, int64_t n) {
  return ceil_div(n, kernels.panel) * kernels.panel * k + kernels.panel;
}

void pack_panels(const MatmulKernels& kernels, const Matrix& b, int64_t l0, int64_t k, int64_t n, int64_t first,
                 int64_t last, float* out) {
  const int64_t size = k * kernels.panel;
  if (b.transposed) {
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t j = panel * kernels.panel;
      kernels.transpose(b.data + j * b.stride + l0, b.stride, k, std::min(kernels.panel, n - j), kernels.panel,
                        out + panel * size);
    }
    return;
  }
  // Whole panels row by row of b, for its rows lie far apart.
  const int64_t whole = std::min(last, n / kernels.panel);
  if (first < whole) {
    kernels.copy_panels(b.data + l0 * b.stride + first * kernels.panel, b.stride, k, whole - first, out + first * size);
  }
  if (whole < last) {
    const int64_t j = whole * kernels.panel;
    kernels.copy(b.data + l0 * b.stride + j, b.stride, k, n - j, kernels.panel, out + whole * size);
  }
}

void tiled_product(const MatmulKernels& kernels, const Product& product, const float* packed) {
  run(kernels, product, packed, threads());
}

void tiled_product_alone(const MatmulKernels& kernels, const Product& product, const float* packed) {
  run(kernels, product, packed, 1);
}

}  // namespace internal

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
