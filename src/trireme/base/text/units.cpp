#include "trireme/base/text/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

// −1 where it is none.
double number_or_none(std::string_view digits) {
  try {
    return parse_number(digits, "");
  } catch (const ConfigError&) {
    return -1;
  }
}

bool drop(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

double parse_seconds(std::string_view text, std::string_view what) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  std::string_view digits = text;
  double unit = 1;
  for (auto [suffix, seconds] : kUnits) {
    if (!drop(digits, suffix)) continue;
    unit = seconds;
    break;
  }
  const double value = number_or_none(digits) * unit;
  if (!(value >= 0) || !std::isfinite(value)) {
    throw ConfigError(fmt::format("{}: '{}' is not a time; write 5us, 0.1ns or 1e-6", what, clipped(text)));
  }
  return value;
}

double parse_rate(std::string_view text, std::string_view what) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view digits = lower;
  drop(digits, "/s");
  const bool bits = drop(digits, "bit");
  if (!bits) drop(digits, "b");
  constexpr std::string_view kUnits = "kmgt";
  const auto unit = digits.empty() ? std::string_view::npos : kUnits.find(digits.back());
  if (unit != std::string_view::npos) digits.remove_suffix(1);
  const double factor = unit == std::string_view::npos ? 1 : std::pow(1000.0, static_cast<double>(unit) + 1);
  const double rate = number_or_none(digits) * factor / (bits ? 8 : 1);
  if (!(rate > 0) || !std::isfinite(rate)) {
    throw ConfigError(fmt::format("{}: '{}' is not a positive rate; write 10G, 1.5GB/s or 1gbit", what, clipped(text)));
  }
  return rate;
}

}  // namespace trireme
