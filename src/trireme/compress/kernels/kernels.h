// What the per-target files of codecs give, *_kernels.cpp: loops over elements, for this machine. The same bits for
// every SIMD target: nothing is contracted, and sums have an order of their own. Pointers to bytes have any alignment;
// `left` may be null, or x itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/base/dtype.h"

namespace trireme::compress::kernels {

// ---- For all codecs ----

// The place of the first x that is infinite or no number; n where all are finite.
std::size_t first_not_finite(const float* x, std::size_t n);
// e ← e + x, but no further than the largest finite numbers.
void accumulate(const float* x, float* e, std::size_t n);

// ---- fp16, bf16 ----

// out ← x within ±limit as f16 or bf16, unless out is null; left ← x − that. False where some x is not finite: then
// what was written means nothing, as with all that follow.
bool halve(DType type, const float* x, std::size_t n, float limit, std::byte* out, float* left);
void widen(DType type, const std::byte* halves, std::size_t n, float* out);
void widen_add(DType type, const std::byte* halves, std::size_t n, float factor, float* out);

// ---- int8 ----

inline constexpr std::size_t kInt8Block = 256;
bool int8_encode(const float* x, std::size_t n, std::byte* message, float* left);
void int8_decode(const std::byte* message, std::size_t n, float* out);
void int8_add(const std::byte* message, std::size_t n, float factor, float* out);

// ---- qsgd, terngrad: random numbers come from the key, the block and the element alone ----

inline constexpr std::size_t kQsgdBlock = 256;
bool qsgd_encode(const float* x, std::size_t n, int bits, std::uint64_t key, std::byte* message, float* left);
void qsgd_decode(const std::byte* message, std::size_t n, int bits, float* out);
void qsgd_add(const std::byte* message, std::size_t n, int bits, float factor, float* out);

inline constexpr std::size_t kTernBlock = 320;
bool tern_encode(const float* x, std::size_t n, std::uint64_t key, std::byte* message, float* left);
void tern_decode(const std::byte* message, std::size_t n, float* out);
void tern_add(const std::byte* message, std::size_t n, float factor, float* out);

// ---- sign, onebit ----

inline constexpr std::size_t kSignBlock = 256;
bool sign_encode(const float* x, std::size_t n, std::byte* message, float* left);
void sign_decode(const std::byte* message, std::size_t n, float* out);
void sign_add(const std::byte* message, std::size_t n, float factor, float* out);
// out ← factor · the sum of the scales, with the sign most messages say.
void sign_vote(std::span<const std::span<const std::byte>> messages, std::size_t n, float factor, float* out);
bool onebit_encode(const float* x, std::size_t n, std::byte* message, float* left);
void onebit_decode(const std::byte* message, std::size_t n, float* out);
void onebit_add(const std::byte* message, std::size_t n, float factor, float* out);

// ---- powersgd ----

// A matrix row by row, the last row perhaps cut short.
struct Matrix {
  std::size_t rows, cols, count;
};
// Factors P and Q of r columns lie column after column, each from a multiple of kColumn floats on, with zeros between.
inline constexpr std::size_t kColumn = 16;
constexpr std::size_t column_stride(std::size_t n) { return (n + kColumn - 1) / kColumn * kColumn; }
// P ← M·Q
void times(const Matrix& shape, const float* m, const float* q, std::size_t rank, float* p);
// Q ← Mᵀ·P
void transposed_times(const Matrix& shape, const float* m, const float* p, std::size_t rank, float* q);
// What is done with X = 2ᵉ·P·Qᵀ, kept within finite numbers: out ← X, out ← out + factor·X or out ← out − X.
enum class Expand { put, add, take_off };
void expand(const Matrix& shape, const float* p, const float* q, std::size_t rank, int exponent, Expand how,
            float factor, float* out);

}  // namespace trireme::compress::kernels
