#include "trireme/base/text/json_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/base/text/json_place.h"
#include "trireme/base/text/json_text.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

std::string reason() { return std::generic_category().message(errno); }

// "/settings/sync.strategy" → "settings.sync.strategy"
std::string key_text(const JsonFile::Place& place) {
  std::string text = place.to_string();
  std::ranges::replace(text, '/', '.');
  return text.empty() ? "the file" : clipped(text.substr(1), 200);
}

}  // namespace

std::string read_text(const std::string& path, std::uint64_t most) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) throw DataError(fmt::format("{}: cannot be read: {}", path, error.message()));
  if (bytes > most) throw DataError(fmt::format("{}: {} bytes; at most {} are expected", path, bytes, most));
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes, '\0');
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(bytes))) {
    throw DataError(fmt::format("{}: cannot be read: {}", path, reason()));
  }
  return text;
}

JsonFile::JsonFile(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  root_ = parse_json(text_, file_);
  if (!root_.is_object()) throw DataError(fmt::format("{}:1: an object in braces was expected", file_));
}

void JsonFile::fail(const Place& place, std::string_view what) const {
  throw DataError(fmt::format("{}:{}: {}: {}", file_, json_line(text_, place.to_string()), key_text(place), what));
}

const JsonFile::Json& JsonFile::at(const Place& place, std::string_view expected) const {
  if (!root_.contains(place)) fail(place, fmt::format("missing; {} was expected", expected));
  return root_.at(place);
}

const JsonFile::Json& JsonFile::object(const Place& place) const {
  const Json& value = at(place, "an object");
  if (!value.is_object()) fail(place, "an object was expected");
  return value;
}

const JsonFile::Json& JsonFile::array(const Place& place) const {
  const Json& value = at(place, "a list");
  if (!value.is_array()) fail(place, "a list was expected");
  return value;
}

std::string JsonFile::text(const Place& place) const {
  const Json& value = at(place, "a text");
  if (!value.is_string()) fail(place, "a text was expected");
  return value.get<std::string>();
}

double JsonFile::number(const Place& place, double least) const {
  const Json& value = at(place, "a number");
  if (!value.is_number()) fail(place, "a number was expected");
  const double number = value.get<double>();
  if (!(number >= least) || !std::isfinite(number))
    fail(place, fmt::format("a number of at least {} was expected", least));
  return number;
}

std::uint64_t JsonFile::count(const Place& place) const {
  const Json& value = at(place, "a whole number");
  if (!value.is_number_unsigned()) fail(place, "a whole number, 0 or above, was expected");
  return value.get<std::uint64_t>();
}

void JsonFile::only(const Place& place, std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : object(place).items()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      fail(place / key,
           fmt::format("no such key; {}there are {}", did_you_mean(key, views_of(keys)), fmt::join(keys, ", ")));
    }
  }
}

}  // namespace trireme
