#include "trireme/base/text/toml_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/base/text/units.h"

namespace trireme {
namespace {

constexpr std::size_t kMostItems = 1 << 20;
constexpr double kMostTableBytes = 1e18;

std::optional<double> number_in(const toml::node& node) {
  if (auto whole = node.value_exact<std::int64_t>()) return static_cast<double>(*whole);
  return node.value_exact<double>();
}

// A number, or a text that `parse` understands; none else.
template <class Parse>
std::optional<double> quantity(const toml::node& node, const Parse& parse) {
  try {
    if (auto text = node.value_exact<std::string>()) return parse(*text);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  auto number = number_in(node);
  return number && std::isfinite(*number) && *number >= 0 ? number : std::nullopt;
}

std::optional<double> bytes_in(const toml::node& node) {
  auto bytes = quantity(node, [](const std::string& text) { return static_cast<double>(parse_size(text, "")); });
  return bytes && *bytes <= kMostTableBytes ? bytes : std::nullopt;
}
std::optional<double> seconds_in(const toml::node& node) {
  return quantity(node, [](const std::string& text) { return parse_seconds(text, ""); });
}

}  // namespace

const toml::node* TomlTable::find(std::string_view key) {
  asked_.emplace_back(key);
  return table_.get(key);
}

bool TomlTable::has(std::string_view key) { return find(key) != nullptr; }

void TomlTable::fail(std::string_view key, std::string_view expected) const {
  const toml::node* node = table_.get(key);
  const auto line = (node != nullptr ? node->source() : table_.source()).begin.line;
  throw DataError(
      fmt::format("{}:{}: {}: expected {}", file_, std::max<unsigned>(line, 1), clipped(full(key), 200), expected));
}

std::string TomlTable::word(std::string_view key, std::string_view fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::string(fallback);
  auto text = node->value_exact<std::string>();
  if (!text || text->empty()) fail(key, "a text that is not empty");
  return *text;
}

double TomlTable::number(std::string_view key, double fallback, double least, double most) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = number_in(*node);
  if (!value || !(*value >= least && *value <= most)) fail(key, fmt::format("a number from {:g} to {:g}", least, most));
  return *value;
}

int TomlTable::whole(std::string_view key, int fallback, int least, int most) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = node->value_exact<std::int64_t>();
  if (!value || *value < least || *value > most) fail(key, fmt::format("a whole number from {} to {}", least, most));
  return static_cast<int>(*value);
}

std::uint64_t TomlTable::seed(std::string_view key, std::uint64_t fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = node->value_exact<std::int64_t>();
  if (!value || *value < 0) fail(key, "a whole number from 0");
  return static_cast<std::uint64_t>(*value);
}

bool TomlTable::flag(std::string_view key, bool fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = node->value_exact<bool>();
  if (!value) fail(key, "true or false");
  return *value;
}

double TomlTable::seconds(std::string_view key, double fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = seconds_in(*node);
  if (!value) fail(key, "a time such as \"50us\", or seconds");
  return *value;
}

double TomlTable::rate(std::string_view key, double fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = quantity(*node, [](const std::string& text) { return parse_rate(text, ""); });
  if (!value || *value <= 0) fail(key, "a rate such as \"1gbit\" or \"125MB/s\", or bytes a second");
  return *value;
}

std::uint64_t TomlTable::size(std::string_view key, std::uint64_t fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  auto value = bytes_in(*node);
  if (!value) fail(key, "a size such as \"64G\", or bytes");
  return static_cast<std::uint64_t>(*value);
}

std::vector<double> TomlTable::numbers(std::string_view key, double least, double most) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  std::vector<double> values;
  const auto add = [&](const toml::node& item) {
    auto value = number_in(item);
    if (!value || !(*value >= least && *value <= most)) {
      fail(key, fmt::format("a number, or a list of numbers, from {:g} to {:g}", least, most));
    }
    values.push_back(*value);
  };
  if (const toml::array* list = node->as_array()) {
    if (list->empty() || list->size() > kMostItems) fail(key, "a list of 1 to 1048576 numbers");
    for (const toml::node& item : *list) add(item);
  } else {
    add(*node);
  }
  return values;
}

std::vector<std::pair<double, double>> TomlTable::points(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  constexpr std::string_view kExpected =
      "a list of [bytes, time], bytes ascending, such as [[1024, \"60us\"], [\"1M\", \"9ms\"]]";
  const toml::array* list = node->as_array();
  if (list == nullptr || list->size() > kMostItems) fail(key, kExpected);
  std::vector<std::pair<double, double>> found;
  for (const toml::node& item : *list) {
    const toml::array* pair = item.as_array();
    if (pair == nullptr || pair->size() != 2) fail(key, kExpected);
    auto bytes = bytes_in(*pair->get(0)), seconds = seconds_in(*pair->get(1));
    if (!bytes || !seconds || *bytes <= (found.empty() ? 0 : found.back().first)) fail(key, kExpected);
    found.emplace_back(*bytes, *seconds);
  }
  return found;
}

std::optional<TomlTable> TomlTable::table(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const toml::table* inner = node->as_table();
  if (inner == nullptr) fail(key, fmt::format("a table, [{}]", full(key)));
  return TomlTable(file_, *inner, full(key));
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr || list->empty()) fail(key, fmt::format("tables, each headed [[{}]]", full(key)));
  std::vector<TomlTable> found;
  for (const toml::node& item : *list) {
    if (item.as_table() == nullptr) fail(key, fmt::format("tables, each headed [[{}]]", full(key)));
    found.emplace_back(file_, *item.as_table(), full(key));
  }
  return found;
}

void TomlTable::finish() const {
  for (const auto& [key, value] : table_) {
    if (std::ranges::find(asked_, key.str()) != asked_.end()) continue;
    std::vector<std::string> known = asked_;
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const auto near = nearest(key.str(), views_of(known));
    fail(key.str(), fmt::format("no such key here, but one of: {}{}", fmt::join(known, ", "),
                                near ? "; did you mean " + std::string(*near) + "?" : ""));
  }
}

}  // namespace trireme
