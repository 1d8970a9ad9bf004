#include "trireme/parallel/memory_formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"

namespace trireme::parallel {

std::string_view name(ShardKind kind) { return kShardKindNames[static_cast<std::size_t>(kind)]; }

ShardKind parse_shard_kind(std::string_view text) {
  const auto found = std::ranges::find(kShardKindNames, text);
  if (found == kShardKindNames.end()) {
    not_one_of("shard", text, kShardKindNames);
  }
  return static_cast<ShardKind>(found - kShardKindNames.begin());
}

double MemoryFormula::parameter_bytes() const {
  return parameters * element_bytes / (shard == ShardKind::parameters ? ranks : 1);
}

double MemoryFormula::gradient_bytes() const {
  return parameters * element_bytes / (shard >= ShardKind::gradients ? ranks : 1);
}

double MemoryFormula::optimizer_bytes() const {
  return optimizer_tensors * parameters * element_bytes / (shard >= ShardKind::optimizer ? ranks : 1);
}

double MemoryFormula::transient_bytes() const {
  constexpr std::array<double, kShardKindNames.size()> kUnits{0, 1, 2, 4};
  return kUnits[static_cast<std::size_t>(shard)] * largest_unit * element_bytes;
}

double activation_bytes(std::span<const PieceMemory> pieces, std::size_t every, int micro_batches) {
  double kept = 0, largest = 0, inputs = 0;
  const std::size_t segment = every > 0 ? every : std::max<std::size_t>(1, pieces.size());
  for (std::size_t first = 0; first < pieces.size(); first += segment) {
    const auto part = pieces.subspan(first, std::min(segment, pieces.size() - first));
    double whole = 0;
    for (const auto& piece : part) whole += piece.kept;
    kept += whole;
    largest = std::max(largest, whole);
    inputs += part.front().input;
  }
  return every > 0 ? micro_batches * inputs + largest : micro_batches * (inputs + kept);
}

}  // namespace trireme::parallel
