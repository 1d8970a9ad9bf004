#include "trireme/base/text/size.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

constexpr std::string_view kUnits = "KMGT";
constexpr double kMostReadable = 0x1p52;  // every whole number up to here is a double

}  // namespace

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw ConfigError(fmt::format("{}: '{}' is not a number", what, clipped(text)));
  }
  return value;
}

std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t lowest, std::int64_t highest) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 53;  // where doubles stop telling whole numbers apart
  const bool read = error == std::errc() && end == text.data() + text.size();
  if (!read || value < lowest || value > highest) {
    const bool huge = end == text.data() + text.size() && !text.starts_with('-') && (!read || value > highest);
    if (highest >= kNoLimit && huge) throw ConfigError(fmt::format("{}: {} is too large", what, clipped(text)));
    const auto range =
        highest >= kNoLimit ? fmt::format(", at least {}", lowest) : fmt::format(" from {} to {}", lowest, highest);
    throw ConfigError(fmt::format("{}: '{}' is not a whole number{}", what, clipped(text), range));
  }
  return value;
}

std::uint64_t parse_size(std::string_view text, std::string_view what) {
  std::string_view digits = text;
  bool binary = digits.ends_with("iB");  // 64KiB, never 64iB
  if (binary) {
    digits.remove_suffix(2);
  } else if (digits.ends_with('B')) {
    digits.remove_suffix(1);
  }
  double unit = 1;
  if (!digits.empty()) {
    auto at = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
    if (at != std::string_view::npos) {
      unit = std::pow(1024.0, static_cast<double>(at) + 1);
      digits.remove_suffix(1);
    }
  }
  double value = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  bool read = error == std::errc() && end == digits.data() + digits.size() && !digits.starts_with('-');
  double bytes = value * unit;
  if (!read || (binary && unit == 1) || !(bytes >= 0 && bytes <= kMostReadable) || bytes != std::floor(bytes)) {
    throw ConfigError(
        fmt::format("{}: '{}' is not a size; write 4, 64K, 1M or 2G (powers of 1,024)", what, clipped(text)));
  }
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
    if (static_cast<std::int64_t>(ranks.size()) + last - first >= kMost) {
      throw ConfigError(fmt::format("{}: '{}' names more than {} rank counts", what, text.substr(0, 40), kMost));
    }
    for (auto rank = first; rank <= last; ++rank) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::string format_size(std::uint64_t bytes) {
  for (int power = 4; power > 0; --power) {
    auto unit = std::uint64_t{1} << (10 * power);
    if (bytes < unit || bytes % (unit / 4) != 0) continue;
    constexpr std::string_view kQuarters[] = {"", ".25", ".5", ".75"};
    return fmt::format("{}{}{}", bytes / unit, kQuarters[bytes % unit / (unit / 4)], kUnits[power - 1]);
  }
  return fmt::format("{}", bytes);
}

std::string format_seconds(double seconds) {
  // A little below the power of ten, where rounding would reach it.
  if (seconds < 999.5e-9) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 999.995e-6) return fmt::format("{:.2f} µs", seconds * 1e6);
  if (seconds < 999.995e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace trireme
