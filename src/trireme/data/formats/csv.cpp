// Comma-separated values: numbers and one column with the class, a number or a word, or with the number to predict.
// Commas, semicolons or tabs, told from the first line; quotes as in RFC 4180, but no line break within them. Columns
// are normalized by their mean and deviation over the training part; what is predicted is taken as it is.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"
#include "trireme/data/formats/formats.h"
#include "trireme/data/input.h"
#include "trireme/data/stored.h"

namespace trireme::data {
namespace {

using Fields = std::vector<std::string>;

[[noreturn]] void bad_field(const Path& path, std::size_t line, std::size_t column, std::string_view what) {
  throw DataError(fmt::format("{}:{}:{}: {}", path.string(), line, column, what));
}

// Into `fields`, whose memory is used again.
void split(const Path& path, std::size_t line, std::string_view text, char separator, Fields& fields) {
  std::size_t count = 0;
  bool quoted = false;
  const auto begin = [&] {
    if (fields.size() == count) fields.emplace_back();
    fields[count++].clear();
  };
  begin();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      fields[count - 1] += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == separator && !quoted) {
      begin();
    } else {
      fields[count - 1] += text[i];
    }
  }
  fields.resize(count);
  if (quoted) bad_field(path, line, count, "a quote is not closed");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

template <typename Number = float>
std::optional<Number> as_number(std::string_view text) {
  text = trimmed(text);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

char separator_of(std::string_view text) {
  const auto first = text.substr(0, text.find('\n'));
  char separator = ',';
  for (const char candidate : {';', '\t'}) {
    if (std::count(first.begin(), first.end(), candidate) > std::count(first.begin(), first.end(), separator)) {
      separator = candidate;
    }
  }
  return separator;
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
    throw ConfigError(fmt::format("{}: no column '{}'; there are {}", path.string(), clipped(wanted), header.size()));
  }
  return number - 1;
}

// Not one number in the first line, besides the class.
bool is_header(const Fields& fields, std::size_t label) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i != label && as_number(fields[i])) return false;
  }
  return true;
}

struct Table {
  std::size_t columns = 0;  // with the class
  std::vector<float> values;
  std::vector<std::string> kinds;  // the class of each row, as written
  std::vector<float> targets;      // or the number to predict
};

void add_row(const Path& path, std::size_t line, const Fields& fields, std::size_t label, Targets targets,
             Table& table) {
  const bool predicts = targets == Targets::values || targets == Targets::zero_one;
  if (fields.size() != table.columns) {
    bad_field(path, line, fields.size(),
              fmt::format("{} fields, but the first line has {}", fields.size(), table.columns));
  }
  for (std::size_t column = 0; column < fields.size(); ++column) {
    const auto field = trimmed(fields[column]);
    if (field.empty()) bad_field(path, line, column + 1, "the field is empty");
    if (column == label && !predicts) {
      table.kinds.emplace_back(field);
      continue;
    }
    const auto value = as_number(field);
    if (!value) bad_field(path, line, column + 1, fmt::format("'{}' is not a finite number", clipped(field)));
    if (column == label && targets == Targets::zero_one && *value != 0 && *value != 1) {
      bad_field(path, line, column + 1,
                fmt::format("'{}' is neither 0 nor 1, as --loss bce wants; predict other numbers with --loss mse",
                            clipped(field)));
    }
    (column == label ? table.targets : table.values).push_back(*value);
  }
}

Table read_table(const Path& path, const std::string& label_column, Targets targets) {
  const auto bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const char separator = separator_of(text);
  Table table;
  Fields fields;
  std::size_t label = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    if (trimmed(row).empty()) continue;
    split(path, line, row, separator, fields);
    if (table.columns == 0) {
      if (fields.size() < 2) bad_field(path, line, 1, "one column; there must be values and a class");
      table.columns = fields.size();
      label = find_label(path, fields, label_column);
      if (is_header(fields, label)) continue;
    }
    add_row(path, line, fields, label, targets, table);
  }
  if (table.kinds.size() + table.targets.size() < 2) bad_file(path, "fewer than two lines with values");
  return table;
}

double value_of(const std::string& name) { return *as_number<double>(name); }

bool are_numbers(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const auto& name) { return as_number<double>(name).has_value(); });
}

// Classes in the order of their names, or of their values where all are numbers; then `1` and `1.0` are one class.
std::vector<std::string> name_classes(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (are_numbers(names)) {
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return value_of(a) < value_of(b); });
    names.erase(std::unique(names.begin(), names.end(),
                            [](const auto& a, const auto& b) { return value_of(a) == value_of(b); }),
                names.end());
  }
  return names;
}

// Continuous values, or numbers and names of the lines, would make a classifier that cannot learn.
void check_classes(const Path& path, const std::vector<std::string>& names, std::size_t lines) {
  for (const auto& name : names) {
    const auto value = as_number(name);
    if (!value || *value == std::floor(*value)) continue;
    bad_file(path, fmt::format("'{}' in the column of the classes is no class but a number with a fraction; predict "
                               "values with --loss mse, or name the column of the classes with --label-column",
                               clipped(name)));
  }
  if (!too_many_classes(names.size(), lines)) return;
  bad_file(path,
           fmt::format("{} different classes in {} lines, such as '{}', are too many to learn; {}name the column of "
                       "the classes with --label-column",
                       names.size(), lines, clipped(names.front()),
                       are_numbers(names) ? "predict values with --loss mse, or " : ""));
}

Samples<float> samples_of(Table table, const std::vector<std::string>& names) {
  Samples<float> samples{{static_cast<std::int64_t>(table.columns) - 1}, std::move(table.values), {}};
  if (names.empty()) {
    samples.targets = std::move(table.targets);
    samples.outputs = 1;
    return samples;
  }
  std::map<std::string, std::int64_t> classes;  // by what is the same for all spellings of one
  const bool numbers = are_numbers(names);
  const auto key = [&](const std::string& name) { return numbers ? fmt::format("{}", value_of(name) + 0.0) : name; };
  for (const auto& name : names) classes.emplace(key(name), static_cast<std::int64_t>(classes.size()));
  for (const auto& kind : table.kinds) samples.labels.push_back(classes.at(key(kind)));
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
  auto table = read_table(path, options.label_column, options.targets);
  const auto names = name_classes(table.kinds);
  check_classes(path, names, table.kinds.size());
  auto train = samples_of(std::move(table), names);
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
