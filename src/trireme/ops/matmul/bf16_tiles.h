// Products of packed bf16 factors by tile registers, each of up to 16 rows of 64 bytes: AMX's, or others that behave
// so.
//
//   c  registers 0 … 3: 2 × 2 tiles of 16 × 16 sums, by rows of a and strips of b
//   a  registers 4, 5: a line of the first 16 rows of the tile, and of those behind them
//   b  registers 6, 7: 16 pairs of the first strip, and of the second
//
// For each line four loads of a KiB and four products: a register of a and of b is used twice. Sums leave the registers
// once per call, into memory that stays in cache, from where they are added to c.
//
// Registers:  void configure(int64_t first_rows, int64_t second_rows)  the shapes of all eight, as above; zeros them
//             void zero<C>(), load<T>(memory, stride in bytes), store<C>(memory, stride in bytes)
//             void multiply<C, A, B>()  c[i][j] += Σ over pairs of a[i] · b[j]
//             void release()
#pragma once
#include "trireme/ops/matmul/bf16_kernels.h"

namespace trireme::ops::internal {

inline constexpr int64_t kRegisterRows = 16;
inline constexpr int64_t kRegisterBytes = 64;  // of a row

template <class Registers>
void bf16_store_tile(Registers& registers, bool below, bool beside, float* sums) {
  constexpr int64_t kBytes = kBf16Panel * sizeof(float);
  registers.template store<0>(sums, kBytes);
  if (beside) registers.template store<1>(sums + kBf16Strip, kBytes);
  if (!below) return;
  sums += kRegisterRows * kBf16Panel;
  registers.template store<2>(sums, kBytes);
  if (beside) registers.template store<3>(sums + kBf16Strip, kBytes);
}

template <class Registers>
void bf16_multiply_tile(Registers& registers, const Bf16Call& call, const uint32_t* a, int64_t rows, float* sums) {
  const bool below = rows > kRegisterRows, beside = call.columns > kBf16Strip;
  registers.template zero<0>();
  registers.template zero<1>();
  registers.template zero<2>();
  registers.template zero<3>();
  const uint32_t* b = call.b;
  for (int64_t line = 0; line < call.lines; ++line, a += rows * kBf16Line, b += kBf16Line * kBf16Strip) {
    registers.template load<4>(a, kRegisterBytes);
    registers.template load<6>(b, kRegisterBytes);
    registers.template multiply<0, 4, 6>();
    if (beside) {
      registers.template load<7>(b + call.b_strip, kRegisterBytes);
      registers.template multiply<1, 4, 7>();
    }
    if (!below) continue;
    registers.template load<5>(a + kRegisterRows * kBf16Line, kRegisterBytes);
    registers.template multiply<2, 5, 6>();
    if (beside) registers.template multiply<3, 5, 7>();
  }
  bf16_store_tile(registers, below, beside, sums);
}

template <class Registers>
void bf16_multiply_tiles(Registers registers, const Bf16Call& call, Bf16Store store) {
  alignas(64) float sums[2 * kRegisterRows * kBf16Panel];
  const Bf16Tiles tiles(call.rows, 2 * kRegisterRows);
  int64_t configured = 0;  // rows
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t first = tiles.begin(tile), rows = tiles.size(tile);
    if (rows != configured) {
      registers.configure(std::min(rows, kRegisterRows), std::max<int64_t>(rows - kRegisterRows, 0));
      configured = rows;
    }
    bf16_multiply_tile(registers, call, call.a + first * call.lines * kBf16Line, rows, sums);
    store(call, sums, first, rows);
  }
  registers.release();
}

// The same loops, with lines of a where the call says.
template <class Registers>
void bf16_multiply_strided_tile(Registers& registers, const Bf16StridedCall& it, const uint32_t* a, bool below,
                                float* sums) {
  const bool beside = it.call.columns > kBf16Strip;
  const int64_t a_row = 4 * it.a_row;  // bytes
  registers.template zero<0>();
  registers.template zero<1>();
  registers.template zero<2>();
  registers.template zero<3>();
  const uint32_t* b = it.call.b;
  for (int64_t line = 0; line < it.call.lines; ++line, b += kBf16Line * kBf16Strip) {
    const uint32_t* const x = a + it.a_steps[line];
    registers.template load<4>(x, a_row);
    registers.template load<6>(b, kRegisterBytes);
    registers.template multiply<0, 4, 6>();
    if (beside) {
      registers.template load<7>(b + it.call.b_strip, kRegisterBytes);
      registers.template multiply<1, 4, 7>();
    }
    if (!below) continue;
    registers.template load<5>(x + kRegisterRows * it.a_row, a_row);
    registers.template multiply<2, 5, 6>();
    if (beside) registers.template multiply<3, 5, 7>();
  }
  bf16_store_tile(registers, below, beside, sums);
}

template <class Registers>
void bf16_multiply_strided_tiles(Registers registers, const Bf16StridedCall& it, Bf16Store store) {
  alignas(64) float sums[2 * kRegisterRows * kBf16Panel];
  registers.configure(kRegisterRows, kRegisterRows);
  for (int64_t first = 0; first < it.call.rows; first += 2 * kRegisterRows) {
    const int64_t end = std::min(first + 2 * kRegisterRows, it.call.rows);
    const auto is_stored = [](const float* row) { return row != nullptr; };
    float* const* const c = it.call.c;
    if (std::none_of(c + first, c + end, is_stored)) continue;
    bf16_multiply_strided_tile(registers, it, it.call.a + first * it.a_row, end - first > kRegisterRows, sums);
    for (int64_t row = first; row < end;) {
      const int64_t begin = std::find_if(c + row, c + end, is_stored) - c;
      row = std::find(c + begin, c + end, nullptr) - c;
      if (begin < row) store(it.call, sums + (begin - first) * kBf16Panel, begin, row - begin);
    }
  }
  registers.release();
}

}  // namespace trireme::ops::internal
