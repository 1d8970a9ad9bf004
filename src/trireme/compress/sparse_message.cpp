#include "trireme/compress/sparse_message.h"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::compress::sparse {
namespace {

// l, for 0 < sent ≤ count.
int low_bits(std::size_t count, std::size_t sent) { return std::bit_width(count / sent) - 1; }

std::size_t bytes_of_bits(std::size_t bits) { return bits / 8 + (bits % 8 != 0); }

std::size_t high_bytes(std::size_t count, std::size_t sent) {
  return sent == 0 ? 0 : bytes_of_bits(sent + ((count - 1) >> low_bits(count, sent)));
}

std::size_t low_bytes(std::size_t count, std::size_t sent) {
  return sent == 0 ? 0 : bytes_of_bits(sent * static_cast<std::size_t>(low_bits(count, sent)));
}

std::size_t list_bytes(std::size_t count, std::size_t sent) { return high_bytes(count, sent) + low_bytes(count, sent); }

Mode best_mode(std::size_t count, std::size_t sent) {
  const std::size_t bitmap = bytes_of_bits(count), list = list_bytes(count, sent);
  if (count * sizeof(float) <= sent * sizeof(float) + std::min(bitmap, list)) return Mode::dense;
  return bitmap <= list ? Mode::bitmap : Mode::listed;
}

void write_head(Mode mode, std::size_t sent, std::byte* message) {
  const std::uint64_t head = static_cast<std::uint64_t>(mode) | static_cast<std::uint64_t>(sent) << 8;
  std::memcpy(message, &head, sizeof head);
}

void set_bit(std::byte* bytes, std::size_t bit) { bytes[bit / 8] |= std::byte{1} << bit % 8; }

void write_list(std::size_t count, std::span<const std::uint64_t> positions, std::byte* to) {
  const int bits = low_bits(count, positions.size());
  const std::size_t high = high_bytes(count, positions.size());
  std::fill_n(to, high, std::byte{0});
  for (std::size_t i = 0; i < positions.size(); ++i) set_bit(to, (positions[i] >> bits) + i);
  to += high;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t held = 0;  // `held_bits` bits, to be written; never more than 7 + 40
  int held_bits = 0;
  for (const std::uint64_t position : positions) {
    held |= (position & mask) << held_bits;
    for (held_bits += bits; held_bits >= 8; held_bits -= 8, held >>= 8) *to++ = static_cast<std::byte>(held);
  }
  if (held_bits > 0) *to = static_cast<std::byte>(held);
}

void write_dense(std::size_t count, std::span<const std::uint64_t> positions, std::span<const float> values,
                 std::byte* to) {
  std::fill_n(to, count * sizeof(float), std::byte{0});
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::memcpy(to + positions[i] * sizeof(float), &values[i], sizeof(float));
  }
}

// Whether the bits of the last byte behind the first `bits` of all are zero.
bool ends_in_zeros(std::span<const std::byte> bytes, std::size_t bits) {
  return bits % 8 == 0 || bytes.back() >> bits % 8 == std::byte{0};
}

}  // namespace

std::size_t message_bytes(std::size_t count, std::size_t sent) {
  const std::size_t places = std::min(bytes_of_bits(count), list_bytes(count, sent));
  return kHead + std::min(count * sizeof(float), sent * sizeof(float) + places);
}

std::size_t write(std::size_t count, std::span<const std::uint64_t> positions, std::span<const float> values,
                  std::byte* message) {
  TRIREME_CHECK(count <= kMostElements && positions.size() <= count && positions.size() == values.size());
  const std::size_t sent = positions.size();
  const Mode mode = best_mode(count, sent);
  write_head(mode, mode == Mode::dense ? count : sent, message);
  std::byte* const body = message + kHead;
  if (mode == Mode::dense) {
    write_dense(count, positions, values, body);
    return message_bytes(count, sent);
  }
  if (sent > 0) std::memcpy(body, values.data(), values.size_bytes());
  std::byte* const places = body + values.size_bytes();
  if (mode == Mode::bitmap) {
    std::fill_n(places, bytes_of_bits(count), std::byte{0});
    for (const std::uint64_t position : positions) set_bit(places, position);
  } else if (sent > 0) {
    write_list(count, positions, places);
  }
  return message_bytes(count, sent);
}

Parts parse(std::span<const std::byte> message, std::size_t count) {
  TRIREME_CHECK(count <= kMostElements);
  if (message.size() < kHead) throw ProtocolError("a sparse message is shorter than its head");
  const std::uint64_t head = word_at(message, 0);
  const auto mode = static_cast<Mode>(head & 0xff);
  const std::size_t sent = head >> 8;
  if (sent > count) throw ProtocolError(fmt::format("a sparse message has {} of {} elements", sent, count));
  const bool fits = mode == Mode::dense ? sent == count : mode == best_mode(count, sent);
  if (!fits) throw ProtocolError(fmt::format("a sparse message has the wrong mode, {}", head & 0xff));
  const std::size_t bytes = mode == Mode::dense ? kHead + count * sizeof(float) : message_bytes(count, sent);
  if (message.size() != bytes) {
    throw ProtocolError(fmt::format("a sparse message has {} bytes instead of {}", message.size(), bytes));
  }
  Parts parts{mode, sent, 0, message.subspan(kHead, sent * sizeof(float)), {}, {}};
  const auto rest = message.subspan(kHead + parts.values.size());
  if (mode == Mode::bitmap) parts.places = rest;
  if (mode == Mode::listed && sent > 0) {
    parts.low_bits = low_bits(count, sent);
    parts.places = rest.first(high_bytes(count, sent));
    parts.low = rest.subspan(parts.places.size());
    if (!ends_in_zeros(parts.low, sent * static_cast<std::size_t>(parts.low_bits))) bad_positions();
  }
  return parts;
}

void bad_positions() { throw ProtocolError("a sparse message has wrong positions"); }

void decode(std::span<const std::byte> message, std::span<float> out) {
  const Parts parts = parse(message, out.size());
  if (parts.mode == Mode::dense) {
    if (!out.empty()) std::memcpy(out.data(), parts.values.data(), parts.values.size());
    return;
  }
  std::ranges::fill(out, 0.0f);
  visit(message, out.size(), [&](std::size_t position, float value) { out[position] = value; });
}

void add(std::span<const std::byte> message, float factor, std::span<float> out) {
  visit(message, out.size(), [&](std::size_t position, float value) { out[position] += factor * value; });
}

}  // namespace trireme::compress::sparse
