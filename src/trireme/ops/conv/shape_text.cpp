#include "trireme/ops/conv/shape_text.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"

namespace trireme::ops {
namespace {

constexpr int64_t kMostSize = 1 << 20;
constexpr double kMostElements = 0x1p34;

std::vector<std::string_view> parts_of(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(between);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<int64_t> sizes_of(std::string_view text, std::string_view what) {
  std::vector<int64_t> sizes;
  for (const std::string_view part : parts_of(text, 'x')) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 0 || size > kMostSize) {
      throw ConfigError(
          fmt::format("{}: '{}' is not sizes up to {}, as in 4x4", what, clipped(std::string(text)), kMostSize));
    }
    sizes.push_back(size);
  }
  return sizes;
}

std::string sides_text(const std::array<int64_t, 2>& sides) {
  return sides[0] == sides[1] ? fmt::format("{}", sides[0]) : fmt::format("{}x{}", sides[0], sides[1]);
}

}  // namespace

std::array<int64_t, 2> parse_sides(std::string_view text, std::string_view what) {
  const auto sizes = sizes_of(text, what);
  if (sizes.size() > 2)
    throw ConfigError(fmt::format("{}: '{}' has more than two sides", what, clipped(std::string(text))));
  return {sizes.front(), sizes.back()};
}

std::string text_of(const ConvShape& it) {
  std::string text = fmt::format("{}x{}x{}x{},{}x{}x{}", it.batch, it.in_channels, it.height, it.width, it.out_channels,
                                 it.kernel[0], it.kernel[1]);
  const auto add = [&](std::string_view name, const std::array<int64_t, 2>& sides, int64_t usual) {
    if (sides != std::array{usual, usual}) text += fmt::format(",{}={}", name, sides_text(sides));
  };
  add("stride", it.stride, 1);
  add("padding", it.padding, 0);
  add("dilation", it.dilation, 1);
  if (it.groups != 1) text += fmt::format(",groups={}", it.groups);
  return text;
}

ConvShape parse_conv_shape(std::string_view text) {
  const auto parts = parts_of(text, ',');
  const auto input = sizes_of(parts[0], "shape");
  const auto filters = parts.size() > 1 ? sizes_of(parts[1], "shape") : std::vector<int64_t>();
  if (input.size() != 4 || filters.size() != 3) {
    throw ConfigError(
        fmt::format("shape: '{}' is not BATCHxCHANNELSxHEIGHTxWIDTH,FILTERSxHEIGHTxWIDTH with ,stride=, ,padding=, "
                    ",dilation=, ,groups=, as in 16x64x32x32,128x3x3,padding=1",
                    clipped(std::string(text))));
  }
  ConvShape shape{.batch = input[0],
                  .in_channels = input[1],
                  .height = input[2],
                  .width = input[3],
                  .out_channels = filters[0],
                  .kernel = {filters[1], filters[2]}};
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const auto at = parts[i].find('=');
    const std::string_view name = parts[i].substr(0, at);
    const std::string_view value = at == parts[i].npos ? "" : parts[i].substr(at + 1);
    if (name == "stride") {
      shape.stride = parse_sides(value, "shape: stride");
    } else if (name == "padding") {
      shape.padding = parse_sides(value, "shape: padding");
    } else if (name == "dilation") {
      shape.dilation = parse_sides(value, "shape: dilation");
    } else if (name == "groups") {
      shape.groups = sizes_of(value, "shape: groups").front();
    } else {
      throw ConfigError(
          fmt::format("shape: no '{}'; there are stride, padding, dilation, groups", clipped(std::string(name))));
    }
  }
  check(shape);
  const auto product = [](auto... sizes) { return (1.0 * ... * static_cast<double>(sizes)); };
  if (product(shape.batch, shape.height, shape.width, shape.in_channels) > kMostElements ||
      product(shape.batch, shape.out_height(), shape.out_width(), shape.out_channels) > kMostElements ||
      product(shape.in_channels, shape.out_channels, shape.kernel[0], shape.kernel[1]) > kMostElements) {
    throw ConfigError(fmt::format("shape: '{}' has more than 2^34 elements", clipped(std::string(text))));
  }
  return shape;
}

}  // namespace trireme::ops
