// What every model does first: reads its arguments and looks at the shape of its data. Errors name the model.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/models/model.h"

namespace trireme::models {

// Reads --model-arg values by name. Call done() after the last one: it refuses what was never asked for.
class Options {
 public:
  Options(std::string_view model, const Arguments& arguments) : model_(model), arguments_(arguments) {}

  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t least, std::int64_t most);
  double share(std::string_view name, double fallback);  // at least 0, below 1
  bool flag(std::string_view name, bool fallback);       // 0, 1, false, true
  void done() const;

 private:
  const std::string* find(std::string_view name);

  std::string model_;
  const Arguments& arguments_;
  std::vector<std::string> known_;
};

struct Image {
  std::int64_t channels, height, width;
  bool small() const { return height <= 64 && width <= 64; }
};

// The shape as an image of at least `least` pixels a side, or ConfigError.
Image image_of(std::string_view model, const Shape& shape, std::int64_t least);

// The length of a text's samples, or ConfigError.
std::int64_t text_length_of(std::string_view model, const Shape& shape);

// How many numbers one sample of anything but text has, or ConfigError.
std::int64_t features_of(std::string_view model, const Shape& shape);

// In place: what it is given was made for it alone.
inline torch::Tensor relu_inplace(torch::Tensor x) { return x.relu_(); }

std::string shape_text(const std::vector<std::int64_t>& shape);  // "3x32x32"

}  // namespace trireme::models
