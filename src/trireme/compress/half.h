// A float cut to 16 bits: what fp16 and bf16 share. The terms of the workers are added in f32 and rounded to 16 bits
// once per hop, so a term is at most the largest number divided by the workers: then no sum on the way overflows.
#pragma once
#include "trireme/compress/codec.h"

namespace trireme::compress {

class HalfCodec : public Codec {
 public:
  HalfCodec(DType type, std::size_t count, int workers);
  Aggregation aggregation() const override { return Aggregation::sum; }

  bool joins() const override { return true; }
  std::size_t most_bytes(std::size_t count) const override { return 2 * count; }
  std::size_t encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) override;
  void decode(std::span<const std::byte> message, std::span<float> out) const override;
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override;

  DType term_type() const override { return type_; }
  std::size_t terms(int) const override { return count_; }
  void give(int round, std::span<const float> x, std::byte* terms) override;
  void take(int round, const std::byte* means, std::span<float> out) override;
  void leave(std::span<float> x) const override;

 private:
  const DType type_;
  const std::size_t count_;
  const float most_;       // the largest number of the type
  const float most_term_;  // of one worker of many
};

}  // namespace trireme::compress
