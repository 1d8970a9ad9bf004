// The innermost loops of the matrix product, for every instruction set: a tile of c stays in registers while k runs,
// each step multiplies one row of b's panel by every row's number of a.
//
// AVX-512: 14 × 32 in 28 registers, two for b, a's numbers straight from memory. AVX2: 6 × 16 in 12.
#include <algorithm>
#include <utility>

#include "trireme/ops/matmul/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/matmul/tile_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::F32;
using ops::HWY_NAMESPACE::kLanes;
using ops::HWY_NAMESPACE::load_first;
using ops::HWY_NAMESPACE::store_first;
using ops::HWY_NAMESPACE::V32;
constexpr int kPanel = 2 * kLanes;
// A tile's rows are packed by vectors, so there are never more than lanes.
constexpr int kRows = kLanes >= 16 ? 14 : kLanes >= 8 ? 6 : 4;
constexpr int kWideRows = kRows / 2;

// Row r of a where a is not packed: few registers hold the rows' addresses, three rows each.
template <int R>
struct Rows {
  const char* at[(R + 2) / 3];
  int64_t stride;  // bytes
  HWY_INLINE Rows(const float* a, int64_t a_row) : stride(a_row * static_cast<int64_t>(sizeof(float))) {
#pragma GCC unroll 8
    for (int i = 0; i < (R + 2) / 3; ++i) at[i] = reinterpret_cast<const char*>(a + 3 * i * a_row);
  }
  HWY_INLINE float operator[](int r) const {
    return *reinterpret_cast<const float*>(at[r / 3] + (r % 3 == 0 ? 0 : r % 3 == 1 ? stride : 2 * stride));
  }
  HWY_INLINE void next() {
#pragma GCC unroll 8
    for (int i = 0; i < (R + 2) / 3; ++i) at[i] += sizeof(float);
  }
};
template <int R>
struct PackedRows {
  const float* at;
  HWY_INLINE PackedRows(const float* a, int64_t) : at(a) {}
  HWY_INLINE float operator[](int r) const { return at[r]; }
  HWY_INLINE void next() { at += R; }
};

// Tiles with fewer products a step have none of their loads' time left.
constexpr bool reads_ahead(int rows, int vectors) { return rows * vectors >= 8; }

// R rows, W vectors.
template <int R, int W, template <int> class A>
void tile(const TileCall& call) {
  const F32 d;
  V32 sums[R][W];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) sums[r][w] = hn::Zero(d);
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {  // c is wanted when the sums are done
    __builtin_prefetch(call.c + r * call.c_stride, 1);
    if constexpr (W > 1) __builtin_prefetch(call.c + r * call.c_stride + kLanes, 1);
  }
  A<R> a(call.a, call.a_row);
  const float* HWY_RESTRICT b = call.b;
  const float* HWY_RESTRICT next = b + call.b_panel;
  ReadAhead ahead = call.ahead != nullptr ? *call.ahead : ReadAhead{reinterpret_cast<const char*>(call.b)};
  for (int64_t l = call.k; l > 0; --l) {
    V32 row[W];
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) row[w] = hn::LoadU(d, (w < 2 ? b : next) + w % 2 * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = hn::Set(d, a[r]);
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) sums[r][w] = hn::MulAdd(x, row[w], sums[r][w]);
    }
    if constexpr (reads_ahead(R, W)) {
      __builtin_prefetch(ahead.row + 64 * ahead.line, 0, 2);
      ahead.line += l & 1;
      const bool end = ahead.line == ahead.lines;
      ahead.row += end ? ahead.stride : 0;
      ahead.line = end ? 0 : ahead.line;
    }
    a.next();
    b += kPanel;
    next += kPanel;
  }
  if (call.ahead != nullptr) *call.ahead = ahead;
#pragma GCC unroll 4
  for (int w = 0; w < W; ++w) {
    const int64_t left = call.columns - w * kLanes;
    if (left <= 0) break;
    const bool whole = left >= kLanes;
    auto bias = hn::Zero(d);
    if (call.bias != nullptr) bias = load_first(call.bias + w * kLanes, std::min<int64_t>(left, kLanes));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      float* at = call.c + r * call.c_stride + w * kLanes;
      auto sum = sums[r][w];
      if (call.add) sum = hn::Add(sum, whole ? hn::LoadU(d, at) : load_first(at, left));
      if (call.bias != nullptr) sum = hn::Add(sum, bias);
      if (call.relu) sum = hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum);  // keeps a NaN
      if (whole) {
        hn::StoreU(sum, d, at);
      } else {
        store_first(sum, at, left);
      }
    }
  }
}

void copy_panel(const float* source, int64_t stride, int64_t k, int64_t count, int64_t width, float* out) {
  const F32 d;
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t left = std::max<int64_t>(count - i, 0);
    if (left >= kLanes) {
      for (int64_t l = 0; l < k; ++l) hn::StoreU(hn::LoadU(d, source + l * stride + i), d, out + l * width + i);
    } else {
      for (int64_t l = 0; l < k; ++l) hn::StoreU(load_first(source + l * stride + i, left), d, out + l * width + i);
    }
  }
}

// A vector may go beyond its row of a tile, into rows that are written later, but not beyond the tile.
void copy_tiles(const float* source, int64_t stride, int64_t k, int64_t count, int64_t rows, int64_t longer,
                float* out) {
  const F32 d;
  const int64_t all = count * rows + longer;
  for (int64_t l = 0; l < k; ++l) {
    const float* from = source + l * stride;
    for (int64_t tile = 0, i = 0; tile < count; ++tile) {
      const int64_t width = rows + (tile < longer ? 1 : 0), to_end = (k - l) * width;
      float* to = out + i * k + l * width;
      __builtin_prefetch(from + 8 * stride + i);
      for (int64_t j = 0; j < width; j += kLanes) {
        const int64_t left = std::min<int64_t>(width - j, kLanes);
        const auto row = i + j + kLanes <= all ? hn::LoadU(d, from + i + j) : load_first(from + i + j, left);
        if (j + kLanes <= to_end) {
          hn::StoreU(row, d, to + j);
        } else {
          store_first(row, to + j, left);
        }
      }
      i += width;
    }
  }
}

void copy_panels(const float* source, int64_t stride, int64_t k, int64_t count, float* out) {
  const F32 d;
  for (int64_t l = 0; l < k; ++l) {
    const float* from = source + l * stride;
    float* to = out + l * kPanel;
    for (int64_t i = 0; i < count; ++i) {
      __builtin_prefetch(from + 8 * stride);
      if constexpr (kPanel * sizeof(float) > 64) __builtin_prefetch(from + 8 * stride + kLanes);
      hn::StoreU(hn::LoadU(d, from), d, to);
      hn::StoreU(hn::LoadU(d, from + kLanes), d, to + kLanes);
      from += kPanel;
      to += k * kPanel;
    }
  }
}

typedef float Native __attribute__((vector_size(kLanes * sizeof(float))));

// Of two vectors: the lanes without bit S of both, or those with it, of the first in the places without.
template <int S, int... I>
HWY_INLINE void exchange(Native& a, Native& b, std::integer_sequence<int, I...>) {
  const Native low = __builtin_shufflevector(a, b, (I & S ? kLanes + I - S : I)...);
  b = __builtin_shufflevector(a, b, (I & S ? kLanes + I : I + S)...);
  a = low;
}

template <int S>
HWY_INLINE void exchange_all(Native* rows) {
  if constexpr (S < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (!(i & S)) exchange<S>(rows[i], rows[i + S], std::make_integer_sequence<int, kLanes>());
    }
    exchange_all<2 * S>(rows);
  }
}

// Blocks of L × L. Rows of `out` are stored in rising order, so that what a vector writes too much is overwritten.
void transpose_panel(const float* source, int64_t stride, int64_t k, int64_t count, int64_t width, float* out) {
  const F32 d;
  for (int64_t l = 0; l < k; l += kLanes) {
    const int64_t left = std::min<int64_t>(k - l, kLanes);
    for (int64_t i = 0; i < width; i += kLanes) {
      if (i >= count) {
        for (int64_t r = 0; r < left; ++r) hn::StoreU(hn::Zero(d), d, out + (l + r) * width + i);
        continue;
      }
      Native rows[kLanes];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) {
        HWY_ALIGN float numbers[kLanes];
        auto row = hn::Zero(d);
        if (i + r < count) {
          const float* from = source + (i + r) * stride + l;
          __builtin_prefetch(from + 64);
          row = left == kLanes ? hn::LoadU(d, from) : load_first(from, left);
        }
        hn::Store(row, d, numbers);
        __builtin_memcpy(&rows[r], numbers, sizeof(Native));
      }
      exchange_all<1>(rows);
      float* to = out + l * width + i;
      if (left == kLanes) {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) __builtin_memcpy(to + r * width, &rows[r], sizeof(Native));
      } else {
        for (int r = 0; r < left; ++r) __builtin_memcpy(to + r * width, &rows[r], sizeof(Native));
      }
    }
  }
}

void turn(const TurnCall& call) {
  const F32 d;
  for (int64_t i = 0; i < call.columns; i += kLanes) {
    const int64_t left = std::min<int64_t>(call.columns - i, kLanes);
    auto bias = hn::Zero(d);
    if (call.bias != nullptr) bias = load_first(call.bias + i, left);
    for (int64_t r = 0; r < call.rows; r += kLanes) {
      Native rows[kLanes];
#pragma GCC unroll 16
      for (int k = 0; k < kLanes; ++k) {
        __builtin_memcpy(&rows[k], call.sums + (i + std::min<int64_t>(k, left - 1)) * call.stride + r, sizeof(Native));
      }
      exchange_all<1>(rows);
      for (int k = 0; k < std::min<int64_t>(kLanes, call.rows - r); ++k) {
        float* at = call.c + (r + k) * call.c_stride + i;
        HWY_ALIGN float numbers[kLanes];
        __builtin_memcpy(numbers, &rows[k], sizeof(Native));
        auto sum = hn::Load(d, numbers);
        if (call.bias != nullptr) sum = hn::Add(sum, bias);
        if (call.relu) sum = hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum);
        if (left == kLanes) {
          hn::StoreU(sum, d, at);
        } else {
          store_first(sum, at, left);
        }
      }
    }
  }
}

template <int W, template <int> class A, int... R>
void fill(MatmulKernels::Tile* tiles, std::integer_sequence<int, R...>) {
  ((tiles[R + 1] = tile<R + 1, W, A>), ...);
}

MatmulKernels make_table() {
  MatmulKernels table;
  table.lanes = kLanes;
  table.panel = kPanel;
  table.rows = kRows;
  table.wide_rows = kWideRows;
  constexpr std::make_integer_sequence<int, kRows> kAll;
  fill<1, PackedRows>(table.tile[0], kAll);
  fill<2, PackedRows>(table.tile[1], kAll);
  fill<4, PackedRows>(table.tile[2], std::make_integer_sequence<int, kWideRows>());
  fill<1, Rows>(table.tile_in_place[0], kAll);
  fill<2, Rows>(table.tile_in_place[1], kAll);
  fill<4, Rows>(table.tile_in_place[2], std::make_integer_sequence<int, kWideRows>());
  table.turn = turn;
  table.copy_tiles = copy_tiles;
  table.copy_panels = copy_panels;
  table.copy = copy_panel;
  table.transpose = transpose_panel;
  return table;
}

const MatmulKernels& table_for() {
  static const MatmulKernels table = make_table();
  return table;
}

}  // namespace trireme::ops::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops::internal {

HWY_EXPORT(table_for);

const MatmulKernels& matmul_kernels() { return HWY_DYNAMIC_DISPATCH(table_for)(); }

}  // namespace trireme::ops::internal
#endif
