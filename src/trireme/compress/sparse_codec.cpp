#include "trireme/compress/sparse_codec.h"

#include <algorithm>

#include "trireme/compress/sparse_message.h"

namespace trireme::compress {

std::size_t SparseCodec::most_bytes(std::size_t count) const {
  return sparse::message_bytes(count, std::min(count, most_sent(count)));
}

void SparseCodec::decode(std::span<const std::byte> message, std::span<float> out) const {
  sparse::decode(message, out);
}

void SparseCodec::add(std::span<const std::byte> message, float factor, std::span<float> out) const {
  sparse::add(message, factor, out);
}

std::size_t SparseCodec::write(const Selection& selection, std::span<const float> x, std::byte* message, float* left) {
  const std::size_t bytes = sparse::write(x.size(), selection.positions(), selection.values(), message);
  if (left) {
    if (left != x.data()) std::ranges::copy(x, left);
    for (const std::uint64_t position : selection.positions()) left[position] = 0;
  }
  return bytes;
}

}  // namespace trireme::compress
