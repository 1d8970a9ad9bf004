#include "trireme/mesh/hybrids.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "trireme/base/error.h"

namespace trireme::mesh {
namespace {

constexpr std::array kHybrids{
    HybridKind{.name = "none"},
    HybridKind{.name = "alexnet", .summary = "convolutions replicated, the rest split", .gathers_batch = true},
    HybridKind{.name = "distbelief",
               .summary = "pipelines on a parameter server",
               .at_servers = true,
               .strategy = "ps-async",
               .mesh = "data=2,pipe=2"},
};

}  // namespace

std::span<const HybridKind> hybrids() { return kHybrids; }

const HybridKind& find_hybrid(std::string_view name) {
  const auto* found = std::ranges::find(kHybrids, name, &HybridKind::name);
  if (found != kHybrids.end()) return *found;
  std::vector<std::string_view> names;
  for (const auto& one : kHybrids) names.push_back(one.name);
  throw ConfigError(fmt::format("--hybrid: '{}' is not one of: {}", name, fmt::join(names, ", ")));
}

}  // namespace trireme::mesh
