#include "trireme/cli/bench/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"

namespace trireme::bench {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

template <typename Element>
std::vector<double> numbers_in(std::string_view bytes) {
  std::vector<Element> elements(bytes.size() / sizeof(Element));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(Element));
  return {elements.begin(), elements.end()};
}

std::vector<double> numbers_of(const std::string& type, std::string_view bytes) {
  if (type == "F32") return numbers_in<float>(bytes);
  if (type == "F64") return numbers_in<double>(bytes);
  if (type == "I64") return numbers_in<std::int64_t>(bytes);
  throw DataError(fmt::format("its elements are {}, not F32, F64 or I64", type));
}

// max|a − b| / max|b|. Where b is nothing but zeros a must be so, too.
double off_by(const std::vector<double>& a, const std::vector<double>& b) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    apart = std::max(apart, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return apart == 0 ? 0 : apart / size;
}

}  // namespace

std::map<std::string, ReadTensor> read_checkpoint(const std::string& path, const std::vector<std::string>& prefixes) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  std::uint64_t length = 0;
  if (file.size() < sizeof length) throw DataError(fmt::format("{}: it is no checkpoint, or cannot be read", path));
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - sizeof length) throw DataError(fmt::format("{}: its header is cut off", path));
  const auto header = nlohmann::json::parse(file.substr(sizeof length, length), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) throw DataError(fmt::format("{}: its header is not JSON", path));
  const auto data = std::string_view(file).substr(sizeof length + length);
  std::map<std::string, ReadTensor> found;
  for (const auto& [name, entry] : header.items()) {
    if (std::ranges::none_of(prefixes, [&](const auto& prefix) { return name.starts_with(prefix); })) continue;
    try {
      const std::uint64_t from = entry.at("data_offsets").at(0), to = entry.at("data_offsets").at(1);
      if (from > to || to > data.size()) throw DataError("it lies beyond the end of the file");
      found[name] = {entry.at("shape"), numbers_of(entry.at("dtype"), data.substr(from, to - from))};
    } catch (const std::exception& error) {
      throw DataError(fmt::format("{}: {}: {}", path, name, error.what()));
    }
  }
  return found;
}

std::string newest_checkpoint(const std::string& folder) {
  std::string newest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with("step-")) newest = std::max(newest, entry.path().string());
  }
  if (newest.empty()) throw DataError(fmt::format("{}: it holds no checkpoint", folder));
  return newest;
}

Distance distance(const std::map<std::string, ReadTensor>& found, const std::map<std::string, ReadTensor>& reference) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const auto& [name, tensor] : found) {
    if (!reference.contains(name)) return {kInfinite, name + ", which the reference does not have"};
  }
  Distance worst;
  for (const auto& [name, wanted] : reference) {
    const auto at = found.find(name);
    if (at == found.end()) return {kInfinite, name + ", which is missing"};
    if (at->second.shape != wanted.shape || at->second.values.size() != wanted.values.size()) {
      return {kInfinite, name + ", which is of another shape"};
    }
    const double off = off_by(at->second.values, wanted.values);
    if (worst.tensor.empty() || off > worst.off_by) worst = {off, name};
  }
  if (worst.tensor.empty()) return {kInfinite, "no tensor at all"};
  return worst;
}

}  // namespace trireme::bench
