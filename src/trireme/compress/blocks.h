// What the codecs share that cut a tensor into blocks of B elements, aggregated by scatter. A message is block after
// block; a block is one or two f32 scales, finite and not negative, and its elements as few bits each.
#pragma once
#include <string_view>

#include "trireme/compress/codec.h"

namespace trireme::compress {

class BlockCodec : public Codec {
 public:
  Aggregation aggregation() const override { return Aggregation::scatter; }
  std::size_t block() const override { return form_.elements; }
  bool joins() const override { return true; }
  std::size_t most_bytes(std::size_t count) const override;
  std::size_t encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) override;
  void decode(std::span<const std::byte> message, std::span<float> out) const override;
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override;

 protected:
  // Elements lie in planes; one byte of a plane is for `per_byte` elements.
  struct Form {
    std::string_view codec;
    std::size_t elements;  // B
    std::size_t scales = 1;
    std::size_t planes = 1, per_byte = 1;
    std::byte most{255};  // the largest byte a plane may hold
    std::size_t bytes(std::size_t n) const { return scales * sizeof(float) + planes * ((n + per_byte - 1) / per_byte); }
  };
  explicit BlockCodec(const Form& form) : form_(form) {}

  // Throws ProtocolError where a message for so many elements has another length, or scales that are none.
  void check(std::span<const std::byte> message, std::size_t count) const;
  // Also called where a number is not finite; then false, and nothing that lasts is changed.
  virtual bool encode_blocks(std::span<const float> x, std::byte* message, float* left) = 0;
  // Of messages that have been checked.
  virtual void decode_blocks(const std::byte* message, std::span<float> out) const = 0;
  virtual void add_blocks(const std::byte* message, float factor, std::span<float> out) const = 0;

 private:
  const Form form_;
};

}  // namespace trireme::compress
