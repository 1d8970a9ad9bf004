#include "trireme/base/files/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trireme {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

// table[k][b]: the effect of byte b followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ kPolynomial : crc >> 1;
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
// The instruction takes 3 cycles but starts every cycle: three lanes of kLane bytes run side by side, then are joined
// by shifting the first two over the bytes that follow them (a multiplication by a constant, as four table lookups).
constexpr std::size_t kLane = 1024;

constexpr std::uint32_t append_zeros(std::uint32_t crc, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) crc = crc >> 8 ^ kTables[0][crc & 0xff];
  return crc;
}
using Shift = std::array<std::array<std::uint32_t, 256>, 4>;
constexpr Shift make_shift() {
  std::array<std::uint32_t, 32> bits{};
  for (std::size_t i = 0; i < 32; ++i) bits[i] = append_zeros(1u << i, kLane);
  Shift shift{};
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      for (std::size_t i = 0; i < 8; ++i) {
        if (b >> i & 1) shift[k][b] ^= bits[8 * k + i];
      }
    }
  }
  return shift;
}

std::uint32_t shift_lane(const Shift& shift, std::uint32_t crc) {
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^ shift[3][crc >> 24];
}

std::uint64_t word(const unsigned char* at) {
  std::uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(const unsigned char* at, std::size_t bytes,
                                                             std::uint32_t crc) {
  static const Shift shift = make_shift();
  std::uint64_t a = crc;
  for (; bytes >= 3 * kLane; bytes -= 3 * kLane, at += 3 * kLane) {
    std::uint64_t b = 0, c = 0;
    for (std::size_t i = 0; i < kLane; i += 8) {
      a = _mm_crc32_u64(a, word(at + i));
      b = _mm_crc32_u64(b, word(at + kLane + i));
      c = _mm_crc32_u64(c, word(at + 2 * kLane + i));
    }
    a = shift_lane(shift, static_cast<std::uint32_t>(a)) ^ b;
    a = shift_lane(shift, static_cast<std::uint32_t>(a)) ^ c;
  }
  for (; bytes >= 8; bytes -= 8, at += 8) a = _mm_crc32_u64(a, word(at));
  auto last = static_cast<std::uint32_t>(a);
  for (; bytes > 0; --bytes, ++at) last = _mm_crc32_u8(last, *at);
  return last;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t crc) {
  const auto* at = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint32_t low = crc ^ (at[0] | at[1] << 8 | at[2] << 16 | static_cast<std::uint32_t>(at[3]) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^ kTables[4][low >> 24] ^
          kTables[3][at[4]] ^ kTables[2][at[5]] ^ kTables[1][at[6]] ^ kTables[0][at[7]];
  }
  for (; bytes > 0; --bytes, ++at) crc = crc >> 8 ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~crc32c_sse42(static_cast<const unsigned char*>(data), bytes, ~crc);
#endif
  return crc32c_portable(data, bytes, crc);
}

}  // namespace trireme
