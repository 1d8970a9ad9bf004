#include "trireme/train/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "trireme/base/error.h"

namespace trireme::train {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadataName = "__metadata__";
constexpr std::size_t kMostDimensions = 64;
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 10> kTypes{{{"F64", 8},
                                                                             {"F32", 4},
                                                                             {"F16", 2},
                                                                             {"BF16", 2},
                                                                             {"I64", 8},
                                                                             {"I32", 4},
                                                                             {"I16", 2},
                                                                             {"I8", 1},
                                                                             {"U8", 1},
                                                                             {"BOOL", 1}}};

// Reads the header event by event, so that nothing is kept but what the format allows, and twice the same is seen.
class Reader : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader header;
  std::string error;

  bool key(string_t& text) override {
    switch (place_) {
      case Place::kTop:
        name_ = text;
        if (!names_.insert(text).second) return refuse("is there twice");
        return true;
      case Place::kMetadata:
        key_ = text;
        return header.metadata.count(text) == 0 || refuse(fmt::format("has {} twice", quoted_name(text)));
      default:
        key_ = text;
        for (std::size_t i = 0; i < kFields.size(); ++i) {
          if (text == kFields[i]) return !std::exchange(seen_[i], true) || refuse(fmt::format("has {} twice", text));
        }
        return refuse(fmt::format("has the unknown field {}", quoted_name(text)));
    }
  }
  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) return enter(Place::kTop);
    if (place_ != Place::kTop) return refuse("holds an object where none belongs");
    if (name_ == kMetadataName) return enter(Place::kMetadata);
    header.entries.push_back({name_, {}, {}, 0, 0});
    seen_ = {};
    offsets_ = 0;
    return enter(Place::kTensor);
  }
  bool end_object() override {
    if (place_ == Place::kTop) return enter(Place::kOutside);
    if (place_ == Place::kTensor) {
      for (std::size_t i = 0; i < kFields.size(); ++i) {
        if (!seen_[i]) return refuse(fmt::format("has no {}", kFields[i]));
      }
      if (offsets_ != 2) return refuse("needs two data_offsets");
    }
    return enter(Place::kTop);
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && key_ != "dtype") {
      return enter(key_ == "shape" ? Place::kShape : Place::kOffsets);
    }
    return refuse("holds a list where none belongs");
  }
  bool end_array() override { return enter(Place::kTensor); }
  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      header.metadata.emplace(key_, text);
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return refuse("holds a text where none belongs");
    header.entries.back().dtype = text;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > std::numeric_limits<std::int64_t>::max()) return refuse("holds a number too large");
    if (place_ == Place::kShape) {
      auto& shape = header.entries.back().shape;
      if (shape.size() == kMostDimensions) return refuse(fmt::format("has over {} dimensions", kMostDimensions));
      shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ != Place::kOffsets) return refuse("holds a number where none belongs");
    if (offsets_ == 2) return refuse("needs two data_offsets");
    (offsets_++ == 0 ? header.entries.back().begin : header.entries.back().end) = value;
    return true;
  }
  bool number_integer(number_integer_t) override { return refuse("holds a number below zero"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("holds a number that is not whole"); }
  bool boolean(bool) override { return refuse("holds true or false where none belongs"); }
  bool null() override { return refuse("holds null"); }
  bool binary(binary_t&) override { return refuse("holds binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error = fmt::format("header is no valid JSON at its byte {}", position);
    return false;
  }
  bool whole() const { return place_ == Place::kOutside && error.empty(); }

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };
  static constexpr std::array<std::string_view, 3> kFields{"dtype", "shape", "data_offsets"};

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  bool refuse(const std::string& what) {
    if (place_ == Place::kOutside) {
      error = "header is no JSON object";
    } else {
      error = fmt::format("{} {} in the header",
                          name_ == kMetadataName ? "__metadata__" : "tensor " + quoted_name(name_), what);
    }
    return false;
  }

  Place place_ = Place::kOutside;
  std::string name_, key_;
  std::set<std::string> names_;
  std::array<bool, 3> seen_{};
  int offsets_ = 0;
};

// False where it does not fit 63 bits. Zeros are left out: strides are products of the other dimensions.
bool multiply_shape(const std::vector<std::int64_t>& shape, std::uint64_t element, std::uint64_t& bytes) {
  std::uint64_t product = element;
  bool empty = false;
  for (auto extent : shape) {
    empty |= extent == 0;
    if (extent > 0 && __builtin_mul_overflow(product, static_cast<std::uint64_t>(extent), &product)) return false;
    if (product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
  }
  bytes = empty ? 0 : product;
  return true;
}

std::string known_types() {
  std::string all;
  for (auto& [name, bytes] : kTypes) all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
  return all;
}

// What is wrong with an entry whose data should begin at `expected`; empty where nothing is.
std::string fault_of(const SafetensorsEntry& entry, std::uint64_t expected, std::uint64_t data_bytes) {
  auto element = safetensors_element_bytes(entry.dtype);
  if (element == 0) return fmt::format("has the type {}; known are {}", quoted_name(entry.dtype), known_types());
  std::uint64_t bytes = 0;
  if (!multiply_shape(entry.shape, element, bytes)) return "has a shape too large";
  auto where = fmt::format("lies at bytes {} to {} of the data", entry.begin, entry.end);
  if (entry.begin > entry.end || entry.end > data_bytes) return fmt::format("{}, which has {}", where, data_bytes);
  if (entry.end - entry.begin != bytes) return fmt::format("{}; its shape and type need {}", where, bytes);
  if (entry.begin < expected) return fmt::format("{} and overlaps the tensor before it", where);
  if (entry.begin > expected) return fmt::format("{} after a hole of {} bytes", where, entry.begin - expected);
  return "";
}

}  // namespace

std::uint64_t safetensors_element_bytes(std::string_view dtype) {
  for (auto& [name, bytes] : kTypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMost = 80;
  std::string shown(name.substr(0, kMost));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return fmt::format("'{}{}'", shown, name.size() > kMost ? "..." : "");
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  auto text = [](std::string_view value) { return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::string out = "{";
  if (!header.metadata.empty())
    out += "\"__metadata__\":" + Json(header.metadata).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (auto& entry : header.entries) {
    out += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", out.size() > 1 ? "," : "",
                       text(entry.name), entry.dtype, Json(entry.shape).dump(), entry.begin, entry.end);
  }
  out += "}";
  out.append((8 - out.size() % 8) % 8, ' ');
  return out;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& file) {
  Reader reader;
  bool good = Json::sax_parse(json.begin(), json.end(), &reader);
  if (!good || !reader.whole()) throw DataError(fmt::format("{}: {}", file, reader.error));
  auto& entries = reader.header.entries;
  std::stable_sort(entries.begin(), entries.end(),
                   [](auto& a, auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t expected = 0;
  for (auto& entry : entries) {
    auto fault = fault_of(entry, expected, data_bytes);
    if (!fault.empty()) throw DataError(fmt::format("{}: tensor {} {}", file, quoted_name(entry.name), fault));
    expected = entry.end;
  }
  if (expected != data_bytes) {
    throw DataError(fmt::format("{}: {} bytes after the last tensor belong to none", file, data_bytes - expected));
  }
  return std::move(reader.header);
}

}  // namespace trireme::train
