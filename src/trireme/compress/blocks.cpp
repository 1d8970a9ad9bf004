#include "trireme/compress/blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/compress/check.h"

namespace trireme::compress {

std::size_t BlockCodec::most_bytes(std::size_t count) const {
  const std::size_t last = count % form_.elements;
  return count / form_.elements * form_.bytes(form_.elements) + (last ? form_.bytes(last) : 0);
}

std::size_t BlockCodec::encode(std::size_t, std::span<const float> x, std::byte* message, float* left) {
  if (!encode_blocks(x, message, left)) check_finite(x);
  return most_bytes(x.size());
}

void BlockCodec::check(std::span<const std::byte> message, std::size_t count) const {
  check_length(form_.codec, message, most_bytes(count));
  const std::size_t stride = form_.bytes(form_.elements), head = form_.scales * sizeof(float);
  for (std::size_t at = 0; at < message.size(); at += stride) {
    const auto block = message.subspan(at, std::min(stride, message.size() - at));
    for (std::size_t i = 0; i < form_.scales; ++i) {
      if (!is_scale(float_at(block.data() + i * sizeof(float)))) {
        throw ProtocolError(fmt::format("{}: the scale of block {} is no size", form_.codec, at / stride));
      }
    }
    if (form_.most == std::byte{255}) continue;
    if (std::ranges::max(block.subspan(head)) > form_.most) {
      throw ProtocolError(fmt::format("{}: block {} holds codes that there are not", form_.codec, at / stride));
    }
  }
}

void BlockCodec::decode(std::span<const std::byte> message, std::span<float> out) const {
  check(message, out.size());
  decode_blocks(message.data(), out);
}

void BlockCodec::add(std::span<const std::byte> message, float factor, std::span<float> out) const {
  check(message, out.size());
  add_blocks(message.data(), factor, out);
}

}  // namespace trireme::compress
