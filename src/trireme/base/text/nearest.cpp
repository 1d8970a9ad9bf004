#include "trireme/base/text/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

char folded(char c) { return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool begins_alike(std::string_view name, std::string_view with) {
  return with.size() <= name.size() && std::ranges::equal(name.substr(0, with.size()), with, {}, &folded, &folded);
}

// Up to how far a name may be from what was written, to be what was meant.
std::size_t reach(std::string_view a, std::string_view b) {
  return std::max<std::size_t>(1, std::max(a.size(), b.size()) / 3);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;  // of the last two letters of a, and of this one
  rows.fill(std::vector<std::size_t>(b.size() + 1));
  auto& [before, above, row] = rows;
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::ranges::rotate(rows, rows.begin() + 1);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char left = folded(a[i - 1]), right = folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right ? 1 : 0)});
      const bool swapped = i > 1 && j > 1 && left == folded(b[j - 2]) && folded(a[i - 2]) == right;
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> names) {
  std::optional<std::string_view> best;
  std::size_t least = 0;
  for (const auto candidate : names) {
    const std::size_t limit = reach(name, candidate);
    const std::size_t longer = std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (name.empty() || candidate.empty() || longer > limit) continue;
    const std::size_t far = edit_distance(name, candidate);
    if (far > limit || far >= std::max(name.size(), candidate.size())) continue;
    const bool alike = best && far == least && begins_alike(candidate, name) && !begins_alike(*best, name);
    if (best && far >= least && !alike) continue;
    best = candidate;
    least = far;
  }
  if (best || name.size() < 3) return best;
  const auto longer = std::ranges::find_if(names, [&](auto candidate) { return begins_alike(candidate, name); });
  return longer == names.end() ? std::nullopt : std::optional(*longer);
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> names) {
  const auto near = nearest(name, names);
  return near ? fmt::format("did you mean {}? ", *near) : "";
}

void not_one_of(std::string_view flag, std::string_view text, std::span<const std::string_view> names) {
  const auto near = nearest(text, names);
  throw ConfigError(fmt::format("{}: '{}' is not one of: {}{}", flag, clipped(text), fmt::join(names, ", "),
                                near ? fmt::format("; did you mean {}?", *near) : ""));
}

}  // namespace trireme
