#include "trireme/models/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"

namespace trireme::models {
namespace {

template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

void check_sizes(std::string_view model, const Shape& shape) {
  if (shape.classes < 1)
    throw ConfigError(fmt::format("model {}: needs at least one class, not {}", model, shape.classes));
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  std::int64_t product = 1;
  for (std::int64_t size : shape.input) {
    if (size < 1 || size > kMost / product) {
      throw ConfigError(fmt::format("model {}: cannot take samples of {}", model, shape_text(shape.input)));
    }
    product *= size;
  }
}

}  // namespace

const std::string* Options::find(std::string_view name) {
  known_.emplace_back(name);
  auto found = arguments_.find(std::string(name));
  return found == arguments_.end() ? nullptr : &found->second;
}

std::int64_t Options::integer(std::string_view name, std::int64_t fallback, std::int64_t least, std::int64_t most) {
  const std::string* text = find(name);
  if (!text) return fallback;
  auto value = parse<std::int64_t>(*text);
  if (!value || *value < least || *value > most) {
    throw ConfigError(
        fmt::format("model {}: {}={} must be a whole number from {} to {}", model_, name, *text, least, most));
  }
  return *value;
}

double Options::share(std::string_view name, double fallback) {
  const std::string* text = find(name);
  if (!text) return fallback;
  auto value = parse<double>(*text);
  if (!value || !(*value >= 0 && *value < 1)) {
    throw ConfigError(fmt::format("model {}: {}={} must be a number from 0 to below 1", model_, name, *text));
  }
  return *value;
}

bool Options::flag(std::string_view name, bool fallback) {
  const std::string* text = find(name);
  if (!text) return fallback;
  if (*text == "1" || *text == "true") return true;
  if (*text == "0" || *text == "false") return false;
  throw ConfigError(fmt::format("model {}: {}={} must be true or false", model_, name, *text));
}

void Options::done() const {
  for (const auto& [name, value] : arguments_) {
    if (std::ranges::find(known_, name) != known_.end()) continue;
    if (known_.empty()) throw ConfigError(fmt::format("model {}: takes no arguments, not {}", model_, name));
    throw ConfigError(fmt::format("model {}: has no argument {}; {}it takes {}", model_, clipped(name),
                                  did_you_mean(name, views_of(known_)), fmt::join(known_, ", ")));
  }
}

Image image_of(std::string_view model, const Shape& shape, std::int64_t least) {
  if (shape.text || shape.input.size() != 3) {
    throw ConfigError(fmt::format("model {}: takes images (channels x height x width), not {}{}", model,
                                  shape.text ? "text of " : "", shape_text(shape.input)));
  }
  check_sizes(model, shape);
  Image image{shape.input[0], shape.input[1], shape.input[2]};
  if (image.height < least || image.width < least) {
    throw ConfigError(fmt::format("model {}: takes images of at least {}x{} pixels, not {}x{}", model, least, least,
                                  image.height, image.width));
  }
  return image;
}

std::int64_t text_length_of(std::string_view model, const Shape& shape) {
  if (!shape.text || shape.input.size() != 1) {
    throw ConfigError(fmt::format("model {}: takes text, not samples of {}", model, shape_text(shape.input)));
  }
  check_sizes(model, shape);
  return shape.input[0];
}

std::int64_t features_of(std::string_view model, const Shape& shape) {
  if (shape.text) throw ConfigError(fmt::format("model {}: takes numbers or images, not text", model));
  if (shape.input.empty()) throw ConfigError(fmt::format("model {}: the shape of the samples is empty", model));
  check_sizes(model, shape);
  std::int64_t features = 1;
  for (std::int64_t size : shape.input) features *= size;
  return features;
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

}  // namespace trireme::models
