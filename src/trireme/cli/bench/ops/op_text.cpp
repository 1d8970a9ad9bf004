#include "trireme/cli/bench/ops/op_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "trireme/base/error.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"

namespace trireme::bench {
namespace {

constexpr int64_t kMostOpSize = 1 << 24;
constexpr double kMostOpProduct = 0x1p42;

// Nothing where it is no list of sizes.
std::vector<int64_t> op_sizes(std::string_view text) {
  std::vector<int64_t> sizes;
  for (const std::string_view word : split(text, 'x')) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (error != std::errc() || end != word.data() + word.size() || size < 0 || size > kMostOpSize) return {};
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

void refuse_shape(const OpFamily& family, std::string_view text) {
  throw ConfigError(fmt::format("--shape: '{}' is no {} of {}, as in {}", clipped(std::string(text)), family.form,
                                family.name, family.example));
}

void refuse_setting(const OpFamily& family, const OpSetting& setting) {
  throw ConfigError(fmt::format("--shape: '{}{}{}' says nothing of {}; write {}, as in {}",
                                clipped(std::string(setting.name)), setting.value.empty() ? "" : "=",
                                clipped(std::string(setting.value)), family.name, family.form, family.example));
}

OpText parse_op_text(const OpFamily& family, std::string_view text, std::initializer_list<std::size_t> parts) {
  OpText parsed;
  double product = 1;
  for (const std::string_view word : split(text, ',')) {
    if (parsed.sizes.size() == parts.size()) {
      const auto at = word.find('=');
      parsed.settings.push_back({word.substr(0, at), at == word.npos ? "" : word.substr(at + 1)});
      continue;
    }
    const auto sizes = op_sizes(word);
    if (sizes.size() != parts.begin()[parsed.sizes.size()] || std::ranges::min(sizes) < 1) refuse_shape(family, text);
    for (const int64_t size : sizes) product *= static_cast<double>(size);
    parsed.sizes.push_back(sizes);
  }
  if (parsed.sizes.size() != parts.size()) refuse_shape(family, text);
  if (product > kMostOpProduct) {
    throw ConfigError(
        fmt::format("--shape: the product of the sizes of '{}' is more than 2^42", clipped(std::string(text))));
  }
  return parsed;
}

std::array<int64_t, 2> sides_of(const OpFamily& family, const OpSetting& setting, int64_t least) {
  const auto sizes = op_sizes(setting.value);
  if (sizes.empty() || sizes.size() > 2 || std::ranges::min(sizes) < least) refuse_setting(family, setting);
  return {sizes.front(), sizes.back()};
}

int64_t number_of(const OpFamily& family, const OpSetting& setting, int64_t least, int64_t most) {
  const auto sizes = op_sizes(setting.value);
  if (sizes.size() != 1 || sizes[0] < least || sizes[0] > most) refuse_setting(family, setting);
  return sizes[0];
}

ops::AlignedFloats some_numbers(int64_t count) {
  ops::AlignedFloats memory(std::max<int64_t>(count, 1));
  for (int64_t i = 0; i < count; ++i) memory.data()[i] = static_cast<float>(i % 17) * 0.125f - 1.03f;
  return memory;
}

}  // namespace trireme::bench
