// What codecs that send messages of sparse_message.h have in common.
#pragma once
#include <span>

#include "trireme/compress/codec.h"
#include "trireme/compress/selection.h"

namespace trireme::compress {

class SparseCodec : public Codec {
 public:
  Aggregation aggregation() const override { return Aggregation::gather; }
  // For the most elements that are sent of so many.
  std::size_t most_bytes(std::size_t count) const final;
  void decode(std::span<const std::byte> message, std::span<float> out) const final;
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const final;

 protected:
  virtual std::size_t most_sent(std::size_t count) const = 0;
  // Writes the message of a selection of x; left ← x, with zeros where it was sent.
  static std::size_t write(const Selection& selection, std::span<const float> x, std::byte* message, float* left);
};

}  // namespace trireme::compress
