// Images kept as bytes; they become floats, normalized, in the one pass that gathers a batch.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trireme/data/stored.h"

namespace trireme::data {

// Of the values as 0 to 1, one per channel.
struct Normalization {
  std::vector<float> mean, deviation;
};

// f32 [count, shape…] and i64 [count] (text: i64 and i64 [count, length]; values: f32 [count, values]), to be filled.
Batch empty_batch(const Shape& shape, std::size_t count);

class ImageSet final : public Dataset {
 public:
  // `augment` is the seed of draw(): a shift by up to an eighth of the height, black beyond the edge, and a mirror.
  ImageSet(Samples<std::uint8_t> samples, std::int64_t classes, const Normalization& normalization,
           std::optional<std::uint64_t> augment);

  std::int64_t size() const override { return samples_.size(); }
  const Shape& shape() const override { return shape_; }
  Batch get(std::span<const std::int64_t> indices) const override;
  Batch draw(std::span<const std::int64_t> indices, std::int64_t epoch) const override;

 private:
  const std::uint8_t* image(std::int64_t index) const;
  void convert(const std::uint8_t* from, float* to) const;
  void convert_varied(const std::uint8_t* from, float* to, std::uint64_t random) const;

  const Samples<std::uint8_t> samples_;
  const Shape shape_;
  const std::optional<std::uint64_t> augment_;
  std::size_t channels_, plane_;
  std::vector<float> scale_, shift_;  // value = byte · scale + shift
};

}  // namespace trireme::data
