#include "trireme/cli/check/check_pipeline.h"

#include <fmt/format.h>

#include "trireme/mesh/checker.h"

namespace trireme::cli {

PipelineProof prove_pipeline(const pipelines::PipelineKind& kind, const std::vector<int>& ranks) {
  PipelineProof proof{kind.name, {}, 0, std::nullopt};
  for (int stages : ranks) {
    if (stages > kMostStagesToCheck) continue;
    proof.stages.push_back(stages);
    for (int micro_batches = 1; micro_batches <= kMostMicroBatchesToCheck; ++micro_batches) {
      for (int chunks = 1; chunks <= (kind.in_chunks ? kMostChunksToCheck : 1); ++chunks) {
        ++proof.cases;
        auto faults = pipelines::faults_of(pipelines::make(kind.name, stages, micro_batches, chunks));
        if (faults.empty()) continue;
        proof.error =
            fmt::format("{} stages, {} micro-batches, {} chunks: {}", stages, micro_batches, chunks, faults[0]);
        return proof;
      }
    }
  }
  return proof;
}

}  // namespace trireme::cli
