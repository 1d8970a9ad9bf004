// How im2col's sums in bf16 are cut into parts, and weights packed for them.
#pragma once
#include <algorithm>
#include <array>

#include "trireme/ops/conv/im2col/window.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/matmul/bf16_kernels.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::im2col {

using internal::Bf16Kernel;
using internal::kBf16Line;
using internal::kBf16Strip;

inline constexpr int64_t kBf16Longest = 512;  // elements of a sum done at once
inline constexpr int64_t kBf16BlockPairs = kBf16Line * kBf16Strip;

static_assert(conv_kernels::kStrip == kBf16Strip, "strips of weights in f32 are turned into those of pairs");

// A window's taps in parts; each ends with a whole line.
struct Parts {
  explicit Parts(const Taps& taps)
      : tap_count(static_cast<int64_t>(taps.offsets.size())),
        run(taps.run),
        at_once(std::max<int64_t>(1, taps.run > 0 ? kBf16Longest / even() : tap_count)) {}

  int64_t even() const { return (run + 1) / 2 * 2; }
  int64_t count() const { return (tap_count + at_once - 1) / at_once; }
  int64_t taps(int64_t part) const { return std::min(at_once, tap_count - part * at_once); }
  int64_t lines(int64_t part) const { return internal::bf16_lines(taps(part) * even()); }
  int64_t first_line(int64_t part) const { return part * internal::bf16_lines(at_once * even()); }
  int64_t all_lines() const { return count() == 0 ? 0 : first_line(count() - 1) + lines(count() - 1); }
  int64_t most_lines() const { return count() == 0 ? 0 : lines(0); }

  int64_t tap_count, run, at_once;
};

// Strips of f32 weights, [taps][run][16] each, as strips of pairs.
inline void pair_weights(const Bf16Kernel& kernel, const Parts& parts, int64_t strips, const float* from,
                         uint32_t* to) {
  const int64_t length = parts.tap_count * parts.run;
  parallel(strips * parts.count(), [&](int64_t it) {
    const int64_t strip = it / parts.count(), part = it % parts.count();
    const float* const first = from + (strip * length + part * parts.at_once * parts.run) * kBf16Strip;
    uint32_t* const out = to + (strip * parts.all_lines() + parts.first_line(part)) * kBf16BlockPairs;
    // A run of odd length has a row of zeros behind it.
    static constexpr std::array<float, kBf16Strip> kZeros{};
    std::array<const float*, 2 * kBf16Line> rows;
    int64_t at = 0, line = 0;
    const auto flush = [&] {
      kernel.packing->strip(rows.data(), at, 0, kBf16Strip, 1, out + line++ * kBf16BlockPairs);
      at = 0;
    };
    const auto add = [&](const float* row) {
      rows[static_cast<std::size_t>(at++)] = row;
      if (at == 2 * kBf16Line) flush();
    };
    for (int64_t tap = 0; tap < parts.taps(part); ++tap) {
      for (int64_t l = 0; l < parts.run; ++l) add(first + (tap * parts.run + l) * kBf16Strip);
      if (parts.run % 2 == 1) add(kZeros.data());
    }
    if (at > 0) flush();
  });
}

}  // namespace trireme::ops::im2col
