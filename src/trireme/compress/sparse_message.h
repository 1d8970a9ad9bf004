// What sparse codecs send: the positions and values of some elements of a piece; all others are zero. Little-endian.
//
//   n  elements of the piece, at most 2^40, known to both sides        s  elements that are sent, none of them zero
//
//   mode         1 byte
//   s            7 bytes
//   values       s floats, in the order of their positions
//   positions    in the way that takes the fewest bytes:
//     listed     Elias–Fano (Elias, 1974): l = ⌊log2(n/s)⌋; of the positions, ascending, p_0 < p_1 < …, first the high
//                parts, as a bit at ⌊p_i / 2^l⌋ + i for each; then the low l bits of each, one after another
//     bitmap     a bit per element
//     dense      none: the message has all n values, zeros among them, and s = n
//
//   bytes(n, s) = 8 + min(4·n, 4·s + min(⌈n/8⌉, ⌈(s + ⌊(n−1)/2^l⌋) / 8⌉ + ⌈s·l / 8⌉)), 8 for s = 0
//
// so that the length depends on n and s alone and is at most 8 more than dense. Listed positions take 2 + log2(n/s)
// bits each at most: 8.6 for one in a hundred, where 8.1 is the least any code can do on average, while differences
// take 10.2 as bytes of seven bits, 10 packed by blocks. Below one in four positions are listed, then there is a
// bitmap, from 31 in 32 on it is dense.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "trireme/base/error.h"

namespace trireme::compress::sparse {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

inline constexpr std::size_t kMostElements = std::size_t{1} << 40;
inline constexpr std::size_t kHead = 8;

enum class Mode : std::uint8_t { dense, bitmap, listed };

// The formula above. Grows with s.
std::size_t message_bytes(std::size_t count, std::size_t sent);

// Writes a message for `count` elements and returns its bytes; positions ascend.
std::size_t write(std::size_t count, std::span<const std::uint64_t> positions, std::span<const float> values,
                  std::byte* message);

// out ← what a message says, or out ← out + factor · that. Throws ProtocolError; then out may be partly written.
void decode(std::span<const std::byte> message, std::span<float> out);
void add(std::span<const std::byte> message, float factor, std::span<float> out);

// A message whose mode, number and length are right; not looked at yet are its positions.
struct Parts {
  Mode mode;
  std::size_t sent;
  int low_bits;                               // l
  std::span<const std::byte> values, places;  // places: the bitmap, or high parts
  std::span<const std::byte> low;
};
Parts parse(std::span<const std::byte> message, std::size_t count);  // throws ProtocolError
[[noreturn]] void bad_positions();

// Up to 8 bytes as a number.
inline std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (at + sizeof word <= bytes.size()) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
  } else {
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  }
  return word;
}

// Calls each(position, value) for all that is sent, positions ascending and below `count`. Throws ProtocolError.
template <class Each>
void visit(std::span<const std::byte> message, std::size_t count, Each each) {
  const Parts parts = parse(message, count);
  const auto value = [&](std::size_t i) {
    float number;
    std::memcpy(&number, parts.values.data() + i * sizeof number, sizeof number);
    return number;
  };
  if (parts.mode == Mode::dense) {
    for (std::size_t i = 0; i < count; ++i) each(i, value(i));
    return;
  }
  const bool listed = parts.mode == Mode::listed;
  const std::uint64_t mask = (std::uint64_t{1} << parts.low_bits) - 1;
  std::size_t i = 0, least = 0;  // the next element sent, and the least position it may have
  for (std::size_t at = 0; at < parts.places.size(); at += 8) {
    for (auto word = word_at(parts.places, at); word != 0; word &= word - 1) {
      if (i == parts.sent) bad_positions();
      std::size_t position = 8 * at + static_cast<std::size_t>(std::countr_zero(word));
      if (listed && parts.low_bits > 0) {
        const std::size_t bit = i * static_cast<std::size_t>(parts.low_bits);
        position = (position - i) << parts.low_bits | (word_at(parts.low, bit / 8) >> bit % 8 & mask);
      } else if (listed) {
        position -= i;
      }
      if (position < least || position >= count) bad_positions();
      each(position, value(i));
      least = position + 1;
      ++i;
    }
  }
  if (i != parts.sent) bad_positions();
}

}  // namespace trireme::compress::sparse
