// What codecs check before they read a number or a message.
#pragma once
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "trireme/compress/codec.h"
#include "trireme/compress/kernels/kernels.h"

namespace trireme::compress {

// Throws NotFinite with the first element that is.
inline void check_finite(std::span<const float> x) {
  const auto bad = kernels::first_not_finite(x.data(), x.size());
  if (bad < x.size()) throw NotFinite(bad);
}

// Throws ProtocolError where a codec's message is not as long as it must be.
void check_length(std::string_view codec, std::span<const std::byte> message, std::size_t bytes);

// A number in a message; of any alignment.
inline float float_at(const std::byte* message) {
  float value;
  std::memcpy(&value, message, sizeof value);
  return value;
}

// Finite, and not below zero: what scales are.
inline bool is_scale(float value) { return std::bit_cast<std::uint32_t>(value) < 0x7f800000u; }

}  // namespace trireme::compress
