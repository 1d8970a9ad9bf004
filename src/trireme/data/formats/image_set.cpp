#include "trireme/data/formats/image_set.h"

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/data/random.h"

namespace trireme::data {

Batch empty_batch(const Shape& shape, std::size_t count) {
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(count)};
  extents.insert(extents.end(), shape.input.begin(), shape.input.end());
  if (shape.text) return {torch::empty(extents, torch::kInt64), torch::empty(extents, torch::kInt64)};
  auto target = shape.values > 0 ? torch::empty({extents[0], shape.values}, torch::kFloat32)
                                 : torch::empty({extents[0]}, torch::kInt64);
  return {torch::empty(extents, torch::kFloat32), target};
}

ImageSet::ImageSet(Samples<std::uint8_t> samples, std::int64_t classes, const Normalization& normalization,
                   std::optional<std::uint64_t> augment)
    : samples_(std::move(samples)),
      shape_{samples_.shape, classes, false, samples_.outputs},
      augment_(augment),
      channels_(static_cast<std::size_t>(samples_.shape.size() == 3 ? samples_.shape[0] : 1)),
      plane_(static_cast<std::size_t>(samples_.each()) / channels_) {
  TRIREME_CHECK(normalization.mean.size() == channels_ && normalization.deviation.size() == channels_);
  for (std::size_t c = 0; c < channels_; ++c) {
    scale_.push_back(1.0f / (255.0f * normalization.deviation[c]));
    shift_.push_back(-normalization.mean[c] / normalization.deviation[c]);
  }
}

const std::uint8_t* ImageSet::image(std::int64_t index) const {
  TRIREME_CHECK(index >= 0 && index < size());
  return samples_.values.data() + static_cast<std::size_t>(index) * channels_ * plane_;
}

void ImageSet::convert(const std::uint8_t* from, float* to) const {
  for (std::size_t c = 0; c < channels_; ++c, from += plane_, to += plane_) {
    const float scale = scale_[c], shift = shift_[c];
    for (std::size_t i = 0; i < plane_; ++i) to[i] = static_cast<float>(from[i]) * scale + shift;
  }
}

void ImageSet::convert_varied(const std::uint8_t* from, float* to, std::uint64_t random) const {
  const std::int64_t height = shape_.input[1], width = shape_.input[2], reach = std::max<std::int64_t>(1, height / 8);
  const auto choices = static_cast<std::uint64_t>(2 * reach + 1);
  const auto down = static_cast<std::int64_t>(below(random, choices)) - reach;
  const auto right = static_cast<std::int64_t>(below(mixed(random), choices)) - reach;
  const bool mirror = random & 1;
  // The columns of the result that lie inside the shifted image.
  const auto first = std::clamp<std::int64_t>(-right, 0, width),
             last = std::clamp<std::int64_t>(width - right, 0, width);
  for (std::size_t c = 0; c < channels_; ++c) {
    const float scale = scale_[c], shift = shift_[c];
    for (std::int64_t y = 0; y < height; ++y, to += width) {
      std::fill(to, to + width, shift);
      if (y + down < 0 || y + down >= height) continue;
      const auto* row = from + (static_cast<std::int64_t>(c) * height + y + down) * width + right;
      for (std::int64_t x = first; x < last; ++x) to[x] = static_cast<float>(row[x]) * scale + shift;
      if (mirror) std::reverse(to, to + width);
    }
  }
}

Batch ImageSet::get(std::span<const std::int64_t> indices) const {
  Batch batch = empty_batch(shape_, indices.size());
  auto* input = batch.input.data_ptr<float>();
  for (const auto index : indices) {
    convert(image(index), input);
    input += channels_ * plane_;
  }
  put_targets(samples_, indices, batch.target);
  return batch;
}

Batch ImageSet::draw(std::span<const std::int64_t> indices, std::int64_t epoch) const {
  if (!augment_) return get(indices);
  Batch batch = empty_batch(shape_, indices.size());
  auto* input = batch.input.data_ptr<float>();
  for (const auto index : indices) {
    convert_varied(image(index), input,
                   random_at(*augment_, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(index)));
    input += channels_ * plane_;
  }
  put_targets(samples_, indices, batch.target);
  return batch;
}

}  // namespace trireme::data
