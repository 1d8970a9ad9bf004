// Comma-separated values: numbers and one column with the class, a number or a word. Commas, semicolons or tabs, told
// from the first line; quotes as in RFC 4180, but no line break within them. Columns are normalized by their mean and
// deviation over the training part.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/data/formats.h"
#include "trireme/data/input.h"
#include "trireme/data/stored.h"

namespace trireme::data {
namespace {

using Fields = std::vector<std::string>;

[[noreturn]] void bad_field(const Path& path, std::size_t line, std::size_t column, std::string_view what) {
  throw DataError(fmt::format("{}:{}:{}: {}", path.string(), line, column, what));
}

Fields split(const Path& path, std::size_t line, std::string_view text, char separator) {
  Fields fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      fields.back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == separator && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += text[i];
    }
  }
  if (quoted) bad_field(path, line, fields.size(), "a quote is not closed");
  return fields;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::optional<float> as_number(std::string_view text) {
  text = trimmed(text);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

struct Table {
  std::vector<std::size_t> lines;  // of each row in the file
  std::vector<Fields> rows;
};

Table read_table(const Path& path) {
  const auto bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.substr(0, text.find('\n'));
  char separator = ',';
  for (const char candidate : {';', '\t'}) {
    if (std::count(first.begin(), first.end(), candidate) > std::count(first.begin(), first.end(), separator))
      separator = candidate;
  }
  Table table;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto row = trimmed(text.substr(0, end)); !row.empty()) {
      table.rows.push_back(split(path, line, text.substr(0, end), separator));
      table.lines.push_back(line);
      const auto expected = table.rows.front().size(), got = table.rows.back().size();
      if (got != expected)
        bad_field(path, line, got, fmt::format("{} fields, but the first line has {}", got, expected));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (table.rows.empty()) bad_file(path, "no line with values");
  if (table.rows.front().size() < 2)
    bad_field(path, table.lines.front(), 1, "one column; there must be values and a class");
  return table;
}

// The column, from 0; a name needs a header.
std::size_t find_label(const Path& path, const Fields& header, const std::string& wanted) {
  if (wanted.empty()) return header.size() - 1;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (trimmed(header[i]) == wanted) return i;
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (error != std::errc() || end != wanted.data() + wanted.size() || number < 1 || number > header.size()) {
    throw ConfigError(fmt::format("{}: no column '{}'; there are {}", path.string(), wanted, header.size()));
  }
  return number - 1;
}

// Classes in the order of their names, or of their values where all are numbers.
std::vector<std::string> name_classes(const Table& table, std::size_t label) {
  std::vector<std::string> names;
  for (const auto& row : table.rows) names.emplace_back(trimmed(row[label]));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (std::all_of(names.begin(), names.end(), [](const auto& name) { return as_number(name).has_value(); })) {
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return std::pair(*as_number(a), std::string_view(a)) < std::pair(*as_number(b), std::string_view(b));
    });
  }
  return names;
}

Samples<float> read_samples(const Path& path, const Table& table, std::size_t label,
                            const std::vector<std::string>& names) {
  std::map<std::string_view, std::int64_t> classes;
  for (const auto& name : names) classes.emplace(name, static_cast<std::int64_t>(classes.size()));
  Samples<float> samples{{static_cast<std::int64_t>(table.rows.front().size()) - 1}, {}, {}};
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.rows[row].size(); ++column) {
      const auto field = trimmed(table.rows[row][column]);
      if (field.empty()) bad_field(path, table.lines[row], column + 1, "the field is empty");
      if (column == label) continue;
      const auto value = as_number(field);
      if (!value) bad_field(path, table.lines[row], column + 1, fmt::format("'{}' is not a finite number", field));
      samples.values.push_back(*value);
    }
    samples.labels.push_back(classes.at(trimmed(table.rows[row][label])));
  }
  return samples;
}

void normalize(Samples<float>& samples, const std::vector<float>& mean, const std::vector<float>& deviation) {
  for (std::size_t i = 0; i < samples.values.size(); ++i) {
    samples.values[i] = (samples.values[i] - mean[i % mean.size()]) / deviation[i % mean.size()];
  }
}

void measure(const Samples<float>& samples, std::vector<float>& mean, std::vector<float>& deviation) {
  const auto columns = static_cast<std::size_t>(samples.each());
  const auto rows = static_cast<double>(samples.size());
  std::vector<double> sums(columns), squares(columns);
  for (std::size_t i = 0; i < samples.values.size(); ++i) sums[i % columns] += samples.values[i];
  for (std::size_t i = 0; i < samples.values.size(); ++i) {
    const double off = samples.values[i] - sums[i % columns] / rows;
    squares[i % columns] += off * off;
  }
  for (std::size_t column = 0; column < columns; ++column) {
    const double spread = std::sqrt(squares[column] / rows);
    mean.push_back(static_cast<float>(sums[column] / rows));
    deviation.push_back(spread > 1e-12 && std::isfinite(spread) ? static_cast<float>(spread) : 1.0f);
  }
}

}  // namespace

bool is_csv(const Path& path) {
  std::error_code error;
  return (path.extension() == ".csv" || path.extension() == ".tsv") && std::filesystem::is_regular_file(path, error);
}

Splits open_csv(const Path& path, const OpenOptions& options) {
  auto table = read_table(path);
  const auto label = find_label(path, table.rows.front(), options.label_column);
  const auto& first = table.rows.front();
  bool header = true;  // not one number in the first line, besides the class
  for (std::size_t i = 0; i < first.size(); ++i) header = header && (i == label || !as_number(first[i]));
  if (header) {
    table.rows.erase(table.rows.begin());
    table.lines.erase(table.lines.begin());
  }
  if (table.rows.size() < 2) bad_file(path, "fewer than two lines with values");
  const auto names = name_classes(table, label);
  auto train = read_samples(path, table, label, names);
  auto test = split_off(train, options.test_fraction, options.seed);
  std::vector<float> mean, deviation;
  measure(train, mean, deviation);
  normalize(train, mean, deviation);
  normalize(test, mean, deviation);
  auto splits = row_splits(path.stem().string(), std::move(train), std::move(test),
                           static_cast<std::int64_t>(names.size()), names, options);
  splits.mean = std::move(mean);
  splits.deviation = std::move(deviation);
  return splits;
}

}  // namespace trireme::data
