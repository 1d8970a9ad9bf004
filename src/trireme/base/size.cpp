#include "trireme/base/size.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "trireme/base/error.h"

namespace trireme {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw ConfigError(fmt::format("{}: '{}' is not a number", what, text));
  }
  return value;
}

std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t lowest, std::int64_t highest) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) {
    throw ConfigError(fmt::format("{}: '{}' is not a whole number from {} to {}", what, text, lowest, highest));
  }
  return value;
}

std::uint64_t parse_size(std::string_view text, std::string_view what) {
  auto fail = [&]() -> std::uint64_t {
    throw ConfigError(fmt::format("{}: '{}' is not a size; write 4, 64K, 1M or 2G (powers of 1,024)", what, text));
  };
  std::string_view digits = text;
  double unit = 1;
  for (std::string_view suffix : {"iB", "B"}) {
    if (digits.ends_with(suffix)) {
      digits.remove_suffix(suffix.size());
      break;
    }
  }
  constexpr std::string_view kUnits = "KMGT";
  if (!digits.empty()) {
    auto at = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
    if (at != std::string_view::npos) {
      unit = std::pow(1024.0, static_cast<double>(at) + 1);
      digits.remove_suffix(1);
    }
  }
  if (digits.empty()) fail();
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  double bytes = value * unit;
  bool whole = bytes == std::floor(bytes);
  if (error != std::errc() || end != digits.data() + digits.size() || !(bytes >= 0) || bytes > 0x1p52 || !whole) fail();
  return static_cast<std::uint64_t>(bytes);
}

std::vector<std::uint64_t> parse_sizes(std::string_view text, std::string_view what) {
  std::vector<std::uint64_t> sizes;
  for (auto part : split(text, ',')) sizes.push_back(parse_size(part, what));
  return sizes;
}

std::vector<int> parse_ranks(std::string_view text, std::string_view what, int lowest) {
  constexpr int kMost = 1 << 20;
  std::vector<int> ranks;
  for (auto part : split(text, ',')) {
    auto dots = part.find("..");
    auto first = parse_integer(part.substr(0, dots), what, lowest, kMost);
    auto last = dots == std::string_view::npos ? first : parse_integer(part.substr(dots + 2), what, lowest, kMost);
    if (last < first) throw ConfigError(fmt::format("{}: '{}' runs backwards; write {}..{}", what, part, last, first));
    for (auto rank = first; rank <= last; ++rank) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  int unit = -1;
  auto value = static_cast<double>(bytes);
  while (unit < 3 && value >= 1024 && std::fmod(value * 64, 1024) == 0) {
    value /= 1024;
    ++unit;
  }
  if (unit < 0) return fmt::format("{}", bytes);
  return fmt::format("{:g}{}", value, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace trireme
