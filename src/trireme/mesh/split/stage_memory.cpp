#include <algorithm>

#include "trireme/mesh/split/split_costs.h"

namespace trireme::mesh {
namespace {

bool covers(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::equal(a, b, [](int x, int y) { return x >= y; });
}

void add(std::vector<std::vector<int>>& most, const std::vector<int>& now) {
  for (const auto& other : most) {
    if (covers(other, now)) return;
  }
  std::erase_if(most, [&](const auto& other) { return covers(now, other); });
  most.push_back(now);
}

}  // namespace

StageMemory::StageMemory(const pipelines::PipelineKind& kind, int stages, int micro_batches, int chunks)
    : versions_(!kind.synchronous), in_flight_(stages) {
  if (chunks == 1) {
    for (int stage = 0; stage < stages; ++stage) {
      in_flight_[stage] = {{kind.most_held(stages, micro_batches, chunks, stage)}};
    }
    return;
  }
  auto schedule = pipelines::make(kind.name, stages, micro_batches, chunks);
  auto frees = schedule.splits_backward ? pipelines::Action::Kind::weight_gradient : pipelines::Action::Kind::backward;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<int> now(chunks, 0);
    for (const auto& action : schedule.actions[stage]) {
      now[action.chunk] += action.kind == pipelines::Action::Kind::forward;
      now[action.chunk] -= action.kind == frees;
      if (action.kind == pipelines::Action::Kind::forward) add(in_flight_[stage], now);
    }
  }
}

double StageMemory::bytes(int stage, std::span<const double> parameters, std::span<const double> kept,
                          double state_factor) const {
  double most = 0;
  for (const auto& counts : in_flight_[stage]) {
    double now = 0;
    for (std::size_t chunk = 0; chunk < kept.size(); ++chunk) {
      now += counts[chunk] * kept[chunk];
      now += parameters[chunk] * (state_factor + (versions_ ? std::max(0, counts[chunk] - 1) : 0));
    }
    most = std::max(most, now);
  }
  return most;
}

std::vector<double> stage_bytes(const SplitCosts& costs, const StageMemory& memory, std::span<const std::size_t> ends,
                                int stages) {
  std::vector<double> bytes;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<double> parameters, kept;
    for (std::size_t part = stage; part < ends.size(); part += stages) {
      std::size_t begin = part == 0 ? 0 : ends[part - 1];
      parameters.push_back(costs.parameters(begin, ends[part]));
      kept.push_back(costs.kept(begin, ends[part]));
    }
    bytes.push_back(memory.bytes(stage, parameters, kept, costs.machine().state_factor));
  }
  return bytes;
}

}  // namespace trireme::mesh
