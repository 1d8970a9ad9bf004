// The parts of matrix products whose factors are rounded to bf16, with sums in f32: how factors are packed, and what
// multiplies them.
//
//   pair   two elements that follow each other along k, of one row of a or one column of b: 32 bits, the first one low
//   line   16 pairs of a row, 64 bytes. k is a whole number of lines: zeros follow its end
//   tile   up to Bf16Kernel::rows rows of a; packed: line after line, in each its rows
//   strip  16 columns of b; packed: pair after pair, in each its columns
//
// 16 rows of a line, and 16 pairs of a strip, are 1 KiB: what a tile register of AMX holds, in the order it wants.
#pragma once
#include <algorithm>
#include <cstdint>

namespace trireme::ops::internal {

inline constexpr int64_t kBf16Strip = 16;  // columns
inline constexpr int64_t kBf16Line = 16;   // pairs
inline constexpr int64_t kBf16Panel = 2 * kBf16Strip;

constexpr int64_t bf16_lines(int64_t k) { return (k + 2 * kBf16Line - 1) / (2 * kBf16Line); }
constexpr int64_t bf16_strips(int64_t columns) { return (columns + kBf16Strip - 1) / kBf16Strip; }

// Rows in tiles as equal as can be, the longer ones first.
struct Bf16Tiles {
  int64_t count = 0, rows = 0, longer = 0;  // of a tile, and how many tiles have one more
  Bf16Tiles(int64_t m, int64_t most) : count((m + most - 1) / most) {
    if (count > 0) rows = m / count, longer = m % count;
  }
  int64_t begin(int64_t tile) const { return tile * rows + std::min(tile, longer); }
  int64_t size(int64_t tile) const { return rows + (tile < longer ? 1 : 0); }
};

// c[i][c_offset + j] = or += Σ a · b for `rows` rows and one panel of columns.
struct Bf16Call {
  const uint32_t* a = nullptr;  // Bf16Tiles(rows, kernel.rows), one after the other
  int64_t rows = 0;
  int64_t lines = 0;
  const uint32_t* b = nullptr;
  int64_t b_strip = 0;          // pairs from the first strip to the second
  float* const* c = nullptr;    // one a row
  int64_t c_offset = 0;         // elements
  int64_t columns = 0;          // at most a panel's
  bool add = false;             // to what c holds
  const float* bias = nullptr;  // of `columns`, or null
  bool relu = false;
};

// As Bf16Call, of a whose rows are read where they lie: up to the next multiple of 16 there are rows to read. Rows of c
// that are null are not stored.
struct Bf16StridedCall {
  Bf16Call call;                     // a: the first row
  int64_t a_row = 0;                 // pairs from a row to the next
  const int64_t* a_steps = nullptr;  // pairs from a row's first to each of its `lines`
};

// Of row i, k is the runs of elements at rows[i] + taps[t], one after the other, each with a zero behind it where it is
// odd.
struct Bf16Runs {
  const float* const* rows = nullptr;
  const int64_t* taps = nullptr;
  int64_t tap_count = 0;
  int64_t run = 0;

  int64_t length() const { return tap_count * ((run + 1) / 2 * 2); }
};

// Packing rounds to nearest even, and numbers too small for a normal float to zero, as the instructions do.
struct Bf16Packing {
  // A tile of a, of `count` rows whose k lies side by side; [lines][count][16 pairs].
  void (*tile)(const Bf16Runs& from, int64_t count, int64_t lines, uint32_t* out) = nullptr;
  // A strip of b whose columns lie side by side: elements [offset, offset + count) of rows[0 … k − 1].
  void (*strip)(const float* const* rows, int64_t k, int64_t offset, int64_t count, int64_t lines,
                uint32_t* out) = nullptr;
  // to[j · to_stride + i] = from[16 i + j], i < 16, j < count ≤ 16.
  void (*transpose)(const uint32_t* from, int64_t count, uint32_t* to, int64_t to_stride) = nullptr;
};
// By vectors, only where has_bf16(); and in plain C++.
const Bf16Packing& bf16_vector_packing();
const Bf16Packing& bf16_plain_packing();

// Writes c from sums whose rows are a panel apart, as `call` says, from its row `first` on.
using Bf16Store = void (*)(const Bf16Call& call, const float* sums, int64_t first, int64_t rows);
void bf16_vector_store(const Bf16Call& call, const float* sums, int64_t first, int64_t rows);
void bf16_plain_store(const Bf16Call& call, const float* sums, int64_t first, int64_t rows);

struct Bf16Kernel {
  int64_t rows = 0;  // of a tile, at most
  void (*multiply)(const Bf16Call& call) = nullptr;
  const Bf16Packing* packing = nullptr;
  void (*multiply_strided)(const Bf16StridedCall& call) = nullptr;
  bool outruns_packing = false;  // rather multiplies by zeros than waits for factors packed once more
};

// Pairs in vectors (AVX512-BF16); only where has_bf16().
const Bf16Kernel& bf16_vector_kernel();
// Tile registers (AMX); only where has_amx().
const Bf16Kernel& bf16_amx_kernel();
// The same loops on tile registers of plain C++, hundreds of times slower, to test them on any CPU; what is around them
// by vectors, only where has_bf16(), or plain too.
const Bf16Kernel& bf16_emulated_kernel(bool vectors);

// Whether this CPU multiplies pairs in vectors, and the limit on instruction sets allows it. Both ask the CPU each
// time: once per product, not per tile.
bool has_bf16();
// Whether it has_bf16(), has tile registers that the kernel lets this process use, and allow_amx() does too.
bool has_amx();

// As strip(), of `count` ≤ 16 columns whose k lies side by side: elements [offset, offset + k) of columns[i].
void bf16_pack_strip_of_columns(const Bf16Packing& packing, const float* const* columns, int64_t offset, int64_t k,
                                int64_t count, int64_t lines, uint32_t* out);
// As tile(), of `count` rows that lie side by side: elements [offset, offset + count) of rows[0 … k − 1].
void bf16_pack_tile_of_columns(const Bf16Packing& packing, const float* const* rows, int64_t k, int64_t offset,
                               int64_t count, int64_t lines, uint32_t* out);

}  // namespace trireme::ops::internal
