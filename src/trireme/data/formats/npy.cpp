// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: "\x93NUMPY", version, length of the header, a
// Python dictionary with descr, fortran_order and shape, the values.
#include "trireme/data/formats/npy.h"

#include <fmt/format.h>

#include <charconv>
#include "trireme/base/text/text.h"

namespace trireme::data {
namespace {

// What follows 'key': in the dictionary.
std::string_view value_of(const std::filesystem::path& where, std::string_view header, std::string_view key) {
  const auto at = header.find(fmt::format("'{}'", key));
  const auto colon = at == std::string_view::npos ? at : header.find(':', at);
  if (colon == std::string_view::npos) bad_file(where, 10, fmt::format("its NPY header has no '{}'", key));
  const auto start = header.find_first_not_of(' ', colon + 1);
  return start == std::string_view::npos ? std::string_view{} : header.substr(start);
}

std::vector<std::int64_t> parse_shape(const std::filesystem::path& where, std::string_view text) {
  std::vector<std::int64_t> shape;
  const auto end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) bad_file(where, 10, "its NPY shape is not a tuple");
  for (const char* at = text.data() + 1; at < text.data() + end;) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, text.data() + end, extent);
    if (error != std::errc() || extent < 0 || shape.size() == 32)
      bad_file(where, 10, "its NPY shape is not a tuple of sizes");
    shape.push_back(extent);
    at = stop;
  }
  return shape;
}

std::size_t width_of(const std::filesystem::path& where, std::string_view type) {
  static constexpr std::string_view kTypes[] = {"|u1", "|i1", "|b1", "<u2", "<i2", "<u4",
                                                "<i4", "<u8", "<i8", "<f4", "<f8"};
  for (const auto known : kTypes) {
    if (type == known) return static_cast<std::size_t>(known[2] - '0');
  }
  bad_file(where, 10,
           fmt::format("type '{}' is none of u1 i1 b1 u2 i2 u4 i4 u8 i8 f4 f8, little-endian", clipped(type)));
}

}  // namespace

std::int64_t Array::size() const {
  std::int64_t product = 1;
  for (const auto extent : shape) product *= extent;
  return product;
}

Array parse_npy(const std::filesystem::path& where, std::span<const std::uint8_t> bytes) {
  const auto text = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x93NUMPY") || text.size() < 12) bad_file(where, 0, "not an NPY array");
  const bool old = bytes[6] == 1;
  if (bytes[6] < 1 || bytes[6] > 3) bad_file(where, 6, fmt::format("NPY version {} is unknown", bytes[6]));
  std::uint64_t length = bytes[8] | std::uint64_t{bytes[9]} << 8;
  if (!old) length |= std::uint64_t{bytes[10]} << 16 | std::uint64_t{bytes[11]} << 24;
  const std::uint64_t start = old ? 10 : 12;
  if (length > bytes.size() - start) bad_file(where, 8, fmt::format("its NPY header of {} bytes is cut short", length));
  const auto header = text.substr(start, length);

  Array array;
  const auto type = value_of(where, header, "descr");
  if (type.size() < 5 || type[0] != '\'' || type[4] != '\'') bad_file(where, start, "its NPY type is not a simple one");
  array.type = type.substr(1, 3);
  if (!value_of(where, header, "fortran_order").starts_with("False")) {
    bad_file(where, start, "is in Fortran order; save it with numpy.ascontiguousarray");
  }
  array.shape = parse_shape(where, value_of(where, header, "shape"));
  std::uint64_t need = width_of(where, array.type);
  for (const auto extent : array.shape) {
    if (extent != 0 && need > bytes.size() / static_cast<std::uint64_t>(extent)) {
      bad_file(where, start, "its NPY shape asks for more values than there are");
    }
    need *= static_cast<std::uint64_t>(extent);
  }
  if (const auto rest = bytes.size() - start - length; rest != need) {
    bad_file(where, start + length, fmt::format("{} bytes of values where its NPY shape asks for {}", rest, need));
  }
  array.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(start + length), bytes.end());
  return array;
}

}  // namespace trireme::data
