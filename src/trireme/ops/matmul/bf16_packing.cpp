#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "trireme/ops/matmul/bf16_kernels.h"

namespace trireme::ops::internal {
namespace {

uint32_t rounded(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return bits >> 16 | 0x40;
  if ((bits & 0x7f800000) == 0) return bits >> 31 << 15;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

void plain_tile(const Bf16Runs& from, int64_t count, int64_t lines, uint32_t* out) {
  std::fill_n(out, lines * count * kBf16Line, 0u);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;  // element of k
    for (int64_t t = 0; t < from.tap_count; ++t, at += at % 2) {
      for (int64_t l = 0; l < from.run; ++l, ++at) {
        const int64_t pair = at / 2, line = pair / kBf16Line;
        out[(line * count + i) * kBf16Line + pair % kBf16Line] |= rounded(from.rows[i][from.taps[t] + l])
                                                                  << 16 * (at % 2);
      }
    }
  }
}

void plain_strip(const float* const* rows, int64_t k, int64_t offset, int64_t count, int64_t lines, uint32_t* out) {
  std::fill_n(out, lines * kBf16Line * kBf16Strip, 0u);
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t i = 0; i < count; ++i) out[l / 2 * kBf16Strip + i] |= rounded(rows[l][offset + i]) << 16 * (l % 2);
  }
}

void plain_transpose(const uint32_t* from, int64_t count, uint32_t* to, int64_t to_stride) {
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t i = 0; i < 16; ++i) to[j * to_stride + i] = from[16 * i + j];
  }
}

using PairBlock = std::array<uint32_t, kBf16Line * kBf16Strip>;

}  // namespace

const Bf16Packing& bf16_plain_packing() {
  static constexpr Bf16Packing packing{plain_tile, plain_strip, plain_transpose};
  return packing;
}

void bf16_plain_store(const Bf16Call& call, const float* sums, int64_t first, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, sums += kBf16Panel) {
    float* const to = call.c[first + r] + call.c_offset;
    for (int64_t j = 0; j < call.columns; ++j) {
      const float sum = sums[j] + (call.add ? to[j] : 0) + (call.bias != nullptr ? call.bias[j] : 0);
      to[j] = call.relu && sum < 0 ? 0 : sum;
    }
  }
}

void bf16_pack_strip_of_columns(const Bf16Packing& packing, const float* const* columns, int64_t offset, int64_t k,
                                int64_t count, int64_t lines, uint32_t* out) {
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t tap = offset + line * 2 * kBf16Line;
    const int64_t run = std::clamp<int64_t>(k - line * 2 * kBf16Line, 0, 2 * kBf16Line);
    alignas(64) PairBlock block;
    packing.tile({columns, &tap, 1, run}, count, 1, block.data());
    std::fill(block.begin() + count * kBf16Line, block.end(), 0u);
    packing.transpose(block.data(), kBf16Line, out + line * kBf16Line * kBf16Strip, kBf16Strip);
  }
}

void bf16_pack_tile_of_columns(const Bf16Packing& packing, const float* const* rows, int64_t k, int64_t offset,
                               int64_t count, int64_t lines, uint32_t* out) {
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t first = line * 2 * kBf16Line, some = std::clamp<int64_t>(k - first, 0, 2 * kBf16Line);
    for (int64_t i = 0; i < count; i += kBf16Strip) {
      const int64_t columns = std::min(kBf16Strip, count - i);
      alignas(64) PairBlock block;
      packing.strip(rows + std::min(first, k), some, offset + i, columns, 1, block.data());
      packing.transpose(block.data(), columns, out + (line * count + i) * kBf16Line, kBf16Line);
    }
  }
}

}  // namespace trireme::ops::internal
