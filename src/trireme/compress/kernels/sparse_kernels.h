// The loops of sparse codecs, for this machine. The same bits for every SIMD target.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trireme::compress::kernels {

// A float without its sign, as bits, is ordered as its magnitude. These are what no finite number has.
inline constexpr std::uint32_t kNotFinite = 0x7f800000;
// What `collect` may write beyond the elements it counts.
inline constexpr std::size_t kSlack = 64;

struct Collected {
  std::size_t count;
  std::uint32_t largest;  // magnitude of all x
};
// The x whose magnitude is at least `lower`, 0 < lower < 2^31, and their places, ascending. Both have room for n +
// kSlack.
Collected collect(const float* x, std::size_t n, std::uint32_t lower, float* values, std::uint32_t* places);

// The sum of all x², in an order of its own.
double sum_of_squares(const float* x, std::size_t n);
// u ← m·u + scale·g;  v ← v + u; both no further than the largest finite numbers.
void momentum(const float* g, float scale, float m, float* u, float* v, std::size_t n);

}  // namespace trireme::compress::kernels
