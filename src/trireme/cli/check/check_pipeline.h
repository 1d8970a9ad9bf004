// `trireme check`, for pipeline schedules: all kinds over a range of sizes.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/mesh/schedule.h"

namespace trireme::cli {

inline constexpr int kMostStagesToCheck = 16, kMostMicroBatchesToCheck = 24, kMostChunksToCheck = 4;

struct PipelineProof {
  std::string_view name;
  std::vector<int> stages;
  int cases = 0;
  std::optional<std::string> error;  // the first fault
};
// Of every number of stages among `ranks` that is not above kMostStagesToCheck.
PipelineProof prove_pipeline(const pipelines::PipelineKind& kind, const std::vector<int>& ranks);

}  // namespace trireme::cli
