#include "trireme/ops/matmul/bf16_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"

#ifdef __x86_64__
// GCC 12's intrinsics begin with vectors that they do not initialize.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define TRIREME_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,bmi2,fma")))

namespace trireme::ops::internal {
namespace {

__mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1); }

template <int R>
TRIREME_BF16 void bf16_rows(const Bf16Tile& tile) {
  __m512 sums[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  const uint32_t *a = tile.a, *b = tile.b;
  for (int64_t l = tile.pairs; l > 0; --l) {
    const auto left = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
    const auto right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + 16));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r])));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, left);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, right);
    }
    a += R;
    b += kBf16Panel;
  }
#pragma GCC unroll 2
  for (int w = 0; w < 2; ++w) {
    const __mmask16 mask = first_lanes(tile.columns - 16 * w);
    const __m512 bias = tile.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, tile.bias + 16 * w);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      float* to = tile.c + r * tile.c_stride + 16 * w;
      __m512 sum = sums[r][w];
      if (tile.add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, to));
      sum = _mm512_add_ps(sum, bias);
      if (tile.relu) sum = _mm512_max_ps(_mm512_setzero_ps(), sum);  // keeps a NaN
      _mm512_mask_storeu_ps(to, mask, sum);
    }
  }
}

template <int... R>
constexpr auto bf16_table(std::integer_sequence<int, R...>) {
  return std::array<void (*)(const Bf16Tile&), sizeof...(R)>{bf16_rows<R + 1>...};
}

TRIREME_BF16 __m512i rounded(const float* x) {
  return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(x))));
}

TRIREME_BF16 void bf16_pairs_here(const float* x, int64_t k, int64_t width, uint32_t* out) {
  for (int64_t l = 0; 2 * l < k; ++l) {
    for (int64_t i = 0; i < width; i += 16) {
      __m512i pair = rounded(x + 2 * l * width + i);
      if (2 * l + 1 < k) pair = _mm512_or_si512(pair, _mm512_slli_epi32(rounded(x + (2 * l + 1) * width + i), 16));
      _mm512_storeu_si512(out + l * width + i, pair);
    }
  }
}

}  // namespace

bool has_bf16() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512dq") && instruction_set() == "avx512";
}

void bf16_tile(int64_t rows, const Bf16Tile& tile) {
  static constexpr auto kTable = bf16_table(std::make_integer_sequence<int, kBf16Rows>());
  kTable[static_cast<std::size_t>(rows - 1)](tile);
}

void bf16_pairs(const float* x, int64_t k, int64_t width, uint32_t* out) { bf16_pairs_here(x, k, width, out); }

}  // namespace trireme::ops::internal

#else

namespace trireme::ops::internal {

bool has_bf16() { return false; }
void bf16_tile(int64_t, const Bf16Tile&) { throw ConfigError("matmul: this CPU has no bf16 products; choose tiled"); }
void bf16_pairs(const float*, int64_t, int64_t, uint32_t*) {
  throw ConfigError("matmul: this CPU has no bf16 products; choose tiled");
}

}  // namespace trireme::ops::internal

#endif
