#include "trireme/sync/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/sync/kinds.h"

namespace trireme::sync {

const std::vector<Kind>& strategies() {
  static const std::vector<Kind> kinds{
      allreduce(),      ps_bsp(), ps_ssp(), ps_async(),     hogwild(),       local_sgd(),  post_local_sgd(),  easgd(),
      average_at_end(), diloco(), sma(),    gossip_dpsgd(), gossip_adpsgd(), gossip_sgp(), stale_allreduce(),
  };
  return kinds;
}

// ---- Allowed values ----

Allowed whole_number(double least, double most, std::vector<std::string_view> or_words) {
  return {Allowed::Kind::integer, least, most, std::move(or_words)};
}
Allowed number(double least, double most, std::vector<std::string_view> or_words) {
  return {Allowed::Kind::number, least, most, std::move(or_words)};
}
Allowed one_of(std::vector<std::string_view> words) { return {Allowed::Kind::word, 0, 0, std::move(words)}; }

namespace {

// "a, b or c"
std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

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

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

const Kind& find_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Kind& kind : strategies()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw ConfigError(fmt::format("there is no strategy '{}'; choose {}", name, listed(names)));
}

const Setting& find_setting(const Kind& kind, std::string_view name) {
  std::string settings;
  for (const Setting& setting : kind.settings) {
    if (setting.name == name) return setting;
    settings += fmt::format("{}{}={} ({})", settings.empty() ? "" : ", ", setting.name, setting.fallback, setting.help);
  }
  throw ConfigError(
      fmt::format("strategy {} has no setting '{}'; it has {}", kind.name, name, settings.empty() ? "none" : settings));
}

}  // namespace

std::string Allowed::text() const {
  if (kind == Kind::word) return listed(words);
  auto numbers = kind == Kind::integer ? fmt::format("a whole number from {:.0f} to {:.0f}", least, most)
                                       : fmt::format("a number from {:g} to {:g}", least, most);
  return words.empty() ? numbers : fmt::format("{}, or {}", numbers, listed(words));
}

bool Allowed::holds(std::string_view value) const {
  if (std::find(words.begin(), words.end(), value) != words.end()) return true;
  if (kind == Kind::word || (kind == Kind::integer && !read_integer(value))) return false;
  const auto read = read_number(value);
  return read && *read >= least && *read <= most;
}

// ---- Values ----

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

// ---- Choice ----

Choice Choice::parse(std::string_view text) {
  const auto colon = text.find(':');
  Choice choice;
  choice.kind = &find_kind(text.substr(0, colon));
  auto& values = choice.values.values_;
  for (const Setting& setting : choice.kind->settings) values.emplace_back(setting.name, setting.fallback);
  if (colon == std::string_view::npos) return choice;

  std::vector<std::string_view> seen;
  for (auto part : split(text.substr(colon + 1), ',')) {
    const auto equals = part.find('=');
    const auto name = part.substr(0, equals);
    const Setting& setting = find_setting(*choice.kind, name);
    if (equals == std::string_view::npos) {
      throw ConfigError(
          fmt::format("strategy {}: {} has no value; write {}={}", choice.kind->name, name, name, setting.fallback));
    }
    const auto value = part.substr(equals + 1);
    if (!setting.allowed.holds(value)) {
      throw ConfigError(
          fmt::format("strategy {}: {}={} is not {}", choice.kind->name, name, value, setting.allowed.text()));
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw ConfigError(fmt::format("strategy {}: {} is given twice", choice.kind->name, name));
    }
    seen.push_back(name);
    values[static_cast<std::size_t>(&setting - choice.kind->settings.data())].second = value;
  }
  return choice;
}

std::string Choice::text() const {
  std::string text(kind->name);
  for (const auto& [name, value] : values.values_) {
    text += fmt::format("{}{}={}", text.size() == kind->name.size() ? ":" : ",", name, value);
  }
  return text;
}

}  // namespace trireme::sync
