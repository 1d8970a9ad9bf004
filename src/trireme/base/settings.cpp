#include "trireme/base/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

std::optional<double> read_number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const Setting& find_setting(std::string_view what, std::span<const Setting> settings, std::string_view name) {
  std::string known;
  std::vector<std::string_view> names;
  for (const Setting& setting : settings) {
    if (setting.name == name) return setting;
    names.push_back(setting.name);
    known += fmt::format("{}{}={} ({})", known.empty() ? "" : ", ", setting.name, setting.fallback, setting.help);
  }
  throw ConfigError(fmt::format("{} has no setting '{}'; {}it has {}", what, clipped(name), did_you_mean(name, names),
                                known.empty() ? "none" : known));
}

// "; did you mean auto?"
std::string meant(std::span<const std::string_view> words, std::string_view value) {
  const auto near = nearest(value, words);
  return near ? fmt::format("; did you mean {}?", *near) : "";
}

}  // namespace

// ---- Allowed values ----

Allowed whole_number(double least, double most, std::vector<std::string_view> or_words) {
  return {Allowed::Kind::integer, least, most, std::move(or_words)};
}
Allowed number(double least, double most, std::vector<std::string_view> or_words) {
  return {Allowed::Kind::number, least, most, std::move(or_words)};
}
Allowed one_of(std::vector<std::string_view> words) { return {Allowed::Kind::word, 0, 0, std::move(words)}; }

std::string Allowed::text() const {
  if (kind == Kind::word) return listed(words);
  const auto range =
      most >= 0x1p53 ? fmt::format(", at least {:g}", least) : fmt::format(" from {:.15g} to {:.15g}", least, most);
  auto numbers = (kind == Kind::integer ? "a whole number" : "a number") + range;
  return words.empty() ? numbers : fmt::format("{}, or {}", numbers, listed(words));
}

bool Allowed::holds(std::string_view value) const {
  if (std::find(words.begin(), words.end(), value) != words.end()) return true;
  if (kind == Kind::word || (kind == Kind::integer && !read_integer(value))) return false;
  const auto read = read_number(value);
  return read && *read >= least && *read <= most;
}

bool Allowed::meant_by(std::string_view value) const {
  double number = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), number).ptr;
  return holds(value) || (kind != Kind::word && !value.empty() && end == value.data() + value.size());
}

// ---- Values ----

Values::Values(std::string_view what, std::span<const Setting> settings, std::optional<std::string_view> given) {
  for (const Setting& setting : settings) values_.emplace_back(setting.name, setting.fallback);
  if (!given) return;
  std::vector<std::string_view> seen;
  for (auto part : split(*given, ',')) {
    const auto equals = part.find('=');
    const bool keyed = equals != std::string_view::npos;
    const bool bare = !keyed && seen.empty() && !settings.empty() && settings[0].allowed.meant_by(part);
    const auto name = bare ? settings[0].name : part.substr(0, equals);
    const auto value = keyed ? part.substr(equals + 1) : part;
    const Setting& setting = find_setting(what, settings, name);
    if (!keyed && !bare) {
      throw ConfigError(fmt::format("{}: {} has no value; write {}={}", what, name, name, setting.fallback));
    }
    if (!setting.allowed.holds(value)) {
      throw ConfigError(fmt::format("{}: {}={} is not {}{}", what, name, clipped(value), setting.allowed.text(),
                                    meant(setting.allowed.words, value)));
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw ConfigError(fmt::format("{}: {} is given twice", what, name));
    }
    seen.push_back(setting.name);
    values_[static_cast<std::size_t>(&setting - settings.data())].second = value;
  }
}

std::string_view Values::text(std::string_view name) const {
  auto at = std::find_if(values_.begin(), values_.end(), [&](const auto& pair) { return pair.first == name; });
  TRIREME_CHECK(at != values_.end());
  return at->second;
}

std::int64_t Values::integer(std::string_view name) const {
  const auto value = read_integer(text(name));
  TRIREME_CHECK(value.has_value());
  return *value;
}

double Values::number(std::string_view name) const {
  const auto value = read_number(text(name));
  TRIREME_CHECK(value.has_value());
  return *value;
}

std::string Values::text() const {
  std::string text;
  for (const auto& [name, value] : values_) text += fmt::format("{}{}={}", text.empty() ? ":" : ",", name, value);
  return text;
}

// ---- Names ----

std::pair<std::string_view, std::optional<std::string_view>> split_choice(std::string_view text) {
  const auto end = text.find_first_of(":,");
  if (end == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, end), text.substr(end + 1)};
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

void no_such_kind(std::string_view what, std::string_view name, std::span<const std::string_view> names) {
  throw ConfigError(
      fmt::format("there is no {} '{}'; {}choose {}", what, clipped(name), did_you_mean(name, names), listed(names)));
}

}  // namespace trireme
