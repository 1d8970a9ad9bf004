// By vectors (AVX512-BF16): an instruction multiplies and adds 16 pairs. Up to 14 rows × 32 columns of sums stay in
// registers; of b a line of registers is loaded for each pair, of a each pair is spread over one.
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/bf16_kernels.h"

#ifdef __x86_64__
// GCC 12's intrinsics begin with vectors that they do not initialize.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define TRIREME_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,bmi2,fma")))

namespace trireme::ops::internal {
namespace {

constexpr int64_t kRows = 14;

TRIREME_BF16 __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1);
}

TRIREME_BF16 void store(__m512 sum, __mmask16 mask, __m512 bias, bool add, bool relu, float* to) {
  if (add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, to));
  sum = _mm512_add_ps(sum, bias);
  if (relu) sum = _mm512_max_ps(_mm512_setzero_ps(), sum);  // keeps a NaN
  _mm512_mask_storeu_ps(to, mask, sum);
}

TRIREME_BF16 __m512 bias_of(const Bf16Call& call, int64_t strip, __mmask16 mask) {
  return call.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, call.bias + kBf16Strip * strip);
}

// A line of a's rows, `a_row` pairs apart.
template <int R, int S>
TRIREME_BF16 [[gnu::always_inline]] inline void add_line(const uint32_t* a, int64_t a_row, const uint32_t* b,
                                                         int64_t b_strip, __m512 (&sums)[R][S]) {
  for (int64_t l = 0; l < kBf16Line; ++l, b += kBf16Strip) {
    __m512bh right[S];
#pragma GCC unroll 2
    for (int s = 0; s < S; ++s) right[s] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + s * b_strip));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r * a_row + l])));
#pragma GCC unroll 2
      for (int s = 0; s < S; ++s) sums[r][s] = _mm512_dpbf16_ps(sums[r][s], x, right[s]);
    }
  }
}

template <int R, int S>
TRIREME_BF16 [[gnu::always_inline]] inline void clear(__m512 (&sums)[R][S]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int s = 0; s < S; ++s) sums[r][s] = _mm512_setzero_ps();
  }
}

template <int R, int S>
TRIREME_BF16 [[gnu::always_inline]] inline void store_sums(const Bf16Call& call, const __m512 (&sums)[R][S],
                                                           float* const* c) {
#pragma GCC unroll 2
  for (int s = 0; s < S; ++s) {
    const __mmask16 mask = first_lanes(call.columns - kBf16Strip * s);
    const __m512 bias = bias_of(call, s, mask);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      if (c[r] != nullptr) {
        store(sums[r][s], mask, bias, call.add, call.relu, c[r] + call.c_offset + kBf16Strip * s);
      }
    }
  }
}

template <int R, int S>
TRIREME_BF16 void multiply_tile(const Bf16Call& call, const uint32_t* a, float* const* c) {
  __m512 sums[R][S];
  clear(sums);
  const uint32_t* b = call.b;
  for (int64_t line = call.lines; line > 0; --line, a += R * kBf16Line, b += kBf16Line * kBf16Strip) {
    add_line(a, kBf16Line, b, call.b_strip, sums);
  }
  store_sums(call, sums, c);
}

template <int R, int S>
TRIREME_BF16 void multiply_strided_tile(const Bf16StridedCall& it, const uint32_t* a, float* const* c) {
  __m512 sums[R][S];
  clear(sums);
  const uint32_t* b = it.call.b;
  for (int64_t line = 0; line < it.call.lines; ++line, b += kBf16Line * kBf16Strip) {
    add_line(a + it.a_steps[line], it.a_row, b, it.call.b_strip, sums);
  }
  store_sums(it.call, sums, c);
}

using MultiplyTile = void (*)(const Bf16Call& call, const uint32_t* a, float* const* c);
using MultiplyStridedTile = void (*)(const Bf16StridedCall& call, const uint32_t* a, float* const* c);

template <int S, int... R>
constexpr auto table(std::integer_sequence<int, R...>) {
  return std::array<MultiplyTile, sizeof...(R)>{multiply_tile<R + 1, S>...};
}

template <int S, int... R>
constexpr auto strided_table(std::integer_sequence<int, R...>) {
  return std::array<MultiplyStridedTile, sizeof...(R)>{multiply_strided_tile<R + 1, S>...};
}

void multiply(const Bf16Call& call) {
  static constexpr auto kRowsOf = std::make_integer_sequence<int, kRows>();
  static constexpr std::array kTiles{table<1>(kRowsOf), table<2>(kRowsOf)};
  const auto& by_rows = kTiles[call.columns > kBf16Strip ? 1 : 0];
  const Bf16Tiles tiles(call.rows, kRows);
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t first = tiles.begin(tile);
    by_rows[static_cast<std::size_t>(tiles.size(tile) - 1)](call, call.a + first * call.lines * kBf16Line,
                                                            call.c + first);
  }
}

void multiply_strided(const Bf16StridedCall& it) {
  static constexpr auto kRowsOf = std::make_integer_sequence<int, kRows>();
  static constexpr std::array kTiles{strided_table<1>(kRowsOf), strided_table<2>(kRowsOf)};
  const auto& by_rows = kTiles[it.call.columns > kBf16Strip ? 1 : 0];
  const Bf16Tiles tiles(it.call.rows, kRows);
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t first = tiles.begin(tile), rows = tiles.size(tile);
    float* const* const c = it.call.c + first;
    if (std::all_of(c, c + rows, [](const float* row) { return row == nullptr; })) continue;
    by_rows[static_cast<std::size_t>(rows - 1)](it, it.call.a + first * it.a_row, c);
  }
}

TRIREME_BF16 void store_rows(const Bf16Call& call, const float* sums, int64_t first, int64_t rows) {
  for (int64_t s = 0; kBf16Strip * s < call.columns; ++s) {
    const __mmask16 mask = first_lanes(call.columns - kBf16Strip * s);
    const __m512 bias = bias_of(call, s, mask);
    for (int64_t r = 0; r < rows; ++r) {
      store(_mm512_loadu_ps(sums + r * kBf16Panel + kBf16Strip * s), mask, bias, call.add, call.relu,
            call.c[first + r] + call.c_offset + kBf16Strip * s);
    }
  }
}

TRIREME_BF16 void pack_tile(const Bf16Runs& from, int64_t count, int64_t lines, uint32_t* out) {
  constexpr int64_t kLength = 2 * kBf16Line;  // elements of a line
  const int64_t length = from.length(), step = count * kBf16Line;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t* const row = out + i * kBf16Line;
    for (int64_t line = length / kLength; line < lines; ++line) {
      _mm512_storeu_si512(row + line * step, _mm512_setzero_si512());
    }
    int64_t at = 0;
    for (int64_t t = 0; t < from.tap_count; ++t) {
      const float* x = from.rows[i] + from.taps[t];
      for (int64_t left = from.run; left > 0;) {
        const int64_t place = at % kLength, some = std::min(kLength - place, left);
        uint32_t* const line = row + at / kLength * step;
        if (some == kLength) {
          const __m512bh pairs = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
          _mm512_storeu_si512(line, reinterpret_cast<__m512i>(pairs));
          at += some;
        } else {
          const __m512 low = _mm512_maskz_loadu_ps(first_lanes(some), x);
          const __m512 high = _mm512_maskz_loadu_ps(first_lanes(some - 16), x + 16);
          const int64_t even = (some + 1) / 2 * 2;
          _mm512_mask_storeu_epi16(reinterpret_cast<uint16_t*>(line) + place,
                                   static_cast<__mmask32>((uint64_t{1} << even) - 1),
                                   reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
          at += even;
        }
        x += some;
        left -= some;
      }
    }
  }
}

TRIREME_BF16 __m512i rounded(__m512 x) {
  return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

TRIREME_BF16 void pack_strip(const float* const* rows, int64_t k, int64_t offset, int64_t count, int64_t lines,
                             uint32_t* out) {
  const __mmask16 mask = first_lanes(count);
  int64_t l = 0;
  for (; l + 1 < k; l += 2, out += kBf16Strip) {
    const __m512i low = rounded(_mm512_maskz_loadu_ps(mask, rows[l] + offset));
    const __m512i high = rounded(_mm512_maskz_loadu_ps(mask, rows[l + 1] + offset));
    _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
  for (; l < lines * 2 * kBf16Line; l += 2, out += kBf16Strip) {
    const __m512i one = l < k ? rounded(_mm512_maskz_loadu_ps(mask, rows[l] + offset)) : _mm512_setzero_si512();
    _mm512_storeu_si512(out, one);
  }
}

// Four times over, halves of what is left change places: 8, 4, 2, 1 apart.
TRIREME_BF16 void transpose(const uint32_t* from, int64_t count, uint32_t* to, int64_t to_stride) {
  __m512i x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = _mm512_loadu_si512(from + 16 * i);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  // x[4q + j] has in its quarter p column 4p + j of rows 4q … 4q + 3.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i low = _mm512_shuffle_i32x4(x[j], x[j + 4], 0x44), high = _mm512_shuffle_i32x4(x[j], x[j + 4], 0xee);
    const __m512i low2 = _mm512_shuffle_i32x4(x[j + 8], x[j + 12], 0x44),
                  high2 = _mm512_shuffle_i32x4(x[j + 8], x[j + 12], 0xee);
    y[j] = _mm512_shuffle_i32x4(low, low2, 0x88);
    y[j + 4] = _mm512_shuffle_i32x4(low, low2, 0xdd);
    y[j + 8] = _mm512_shuffle_i32x4(high, high2, 0x88);
    y[j + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
  }
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) {
    if (j < count) _mm512_storeu_si512(to + j * to_stride, y[j]);
  }
}

}  // namespace

bool has_bf16() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && instruction_set() == "avx512";
}

const Bf16Kernel& bf16_vector_kernel() {
  static const Bf16Kernel kernel{kRows, multiply, &bf16_vector_packing(), multiply_strided};
  return kernel;
}

const Bf16Packing& bf16_vector_packing() {
  static constexpr Bf16Packing packing{pack_tile, pack_strip, transpose};
  return packing;
}

void bf16_vector_store(const Bf16Call& call, const float* sums, int64_t first, int64_t rows) {
  store_rows(call, sums, first, rows);
}

}  // namespace trireme::ops::internal

#else

namespace trireme::ops::internal {

bool has_bf16() { return false; }
const Bf16Kernel& bf16_vector_kernel() { throw ConfigError("matmul: this CPU has no bf16 products; choose tiled"); }
const Bf16Packing& bf16_vector_packing() { return bf16_plain_packing(); }
void bf16_vector_store(const Bf16Call& call, const float* sums, int64_t first, int64_t rows) {
  bf16_plain_store(call, sums, first, rows);
}

}  // namespace trireme::ops::internal

#endif
