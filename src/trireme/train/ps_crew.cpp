#include "trireme/train/ps_crew.h"

#include <fmt/format.h>

namespace trireme::train {

void PsCrew::sum(std::span<double> numbers) {
  client_.sum(fmt::format("sum {}", sums_++), numbers, Deadline::in_seconds(timeout_s_));
}

std::optional<std::int64_t> PsCrew::take(const Part& part) {
  if (!client_.stopped().empty()) return std::nullopt;
  auto taken =
      client_.next_ticket(fmt::format("part {} from {}", part.number, part.first),
                          static_cast<std::uint64_t>(part.limit - part.first), Deadline::in_seconds(timeout_s_));
  if (!taken) return std::nullopt;
  return part.first + static_cast<std::int64_t>(*taken);
}

}  // namespace trireme::train
