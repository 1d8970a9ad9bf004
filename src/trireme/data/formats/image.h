// Pictures in files: PNG and JPEG, told apart by their first bytes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "trireme/data/dataset.h"

namespace trireme::data {

// Red, green and blue of a pixel one after another, row by row from the top.
struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

// At most 2²⁶ pixels; transparent ones are black. Throws DataError naming the file.
Image read_image(const std::filesystem::path& path);

// The square in the middle, scaled to `side`; each new pixel is the mean of those it covers.
Image square(const Image& image, std::int64_t side);

// A picture as a model trained on `splits` wants it: f32 [1, channels, height, width], scaled and normalized. Throws
// ConfigError where the data set is not one of images.
torch::Tensor read_input(const std::filesystem::path& path, const Splits& splits);

}  // namespace trireme::data
