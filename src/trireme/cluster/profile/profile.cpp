#include "trireme/cluster/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/quantile.h"
#include "trireme/base/settings.h"

namespace trireme::cluster {

Quantiles quantiles_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {quantile_of_sorted(values, 0.1), quantile_of_sorted(values, 0.5), quantile_of_sorted(values, 0.9)};
}

std::size_t Profile::gradient_elements() const {
  std::size_t sum = 0;
  for (const auto& gradient : gradients) sum += gradient.elements;
  return sum;
}

const CodecProfile& Profile::codec(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const auto& one : codecs) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  if (names.empty()) {
    throw ConfigError(
        fmt::format("{}: the profile has no codecs, so nothing is known of '{}'", file.empty() ? model : file, name));
  }
  throw ConfigError(
      fmt::format("{}: the profile has no codec '{}'; it has {}", file.empty() ? model : file, name, listed(names)));
}

}  // namespace trireme::cluster
