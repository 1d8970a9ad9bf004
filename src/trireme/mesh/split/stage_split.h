// Where to cut a chain of pieces into the stages of a pipeline, by exact dynamic programmes.
//
// A piece's forward and backward take seconds, a cut moves what crosses it there and back. Transfers overlap with
// compute, so the pipeline's beat is its slowest stage or cut; filling and draining it costs each of them once more.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/mesh/timing.h"

namespace trireme::mesh {

// For one micro-batch.
struct PieceCost {
  std::string name;
  double forward_s = 0, backward_s = 0;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t kept_bytes = 0;    // activations kept between forward and backward
  std::uint64_t output_bytes = 0;  // values that cross a cut after it
};

struct Machine {
  double latency_s = 0, bytes_per_s = 1e9;  // between neighbouring stages
  std::uint64_t memory_bytes = 0;           // per worker; 0: unlimited
  double state_factor =
      3;  // bytes of weights, gradient and optimizer per byte of weights: 3 for sgd with momentum, 4 adam
};

struct StageSplit {
  std::vector<std::size_t> ends;  // one past the last piece of each part; the last is the number of pieces
  double slowest_s = 0;           // the beat: a micro-batch's seconds in the slowest stage or over the slowest cut
  double step_s = 0;  // micro-batches · slowest, and filling and draining as the kind's bubble formula has it
  std::vector<std::uint64_t> memory_bytes;  // by stage
  bool fits = true;                         // else this is the split whose worst stage needs least
  bool exact = true;  // false only in chunks, with too little memory for what is fastest, after long search
};

// The fastest split into stages · chunks parts (chunks counts for kinds in chunks) among those that fit. A stage holds
// parameters · state_factor, what the kind's schedule keeps in flight there, and in an asynchronous kind another copy
// of its weights for each micro-batch in flight after the first. Throws ConfigError for more parts than pieces.
StageSplit best_split(std::span<const PieceCost> pieces, int stages, int micro_batches,
                      const pipelines::PipelineKind& kind, const Machine& machine, int chunks = 2);

// What pipelines::time_of needs to play such a split.
pipelines::Costs costs_of(std::span<const PieceCost> pieces, std::span<const std::size_t> ends, bool splits_backward,
                          const Machine& machine);

// The split whose schedule takes least when it is played with these costs, among those that fit: all are tried where
// they are few, else cuts of best_split are moved by a piece at a time while that helps. Splits with the same beat
// differ in that, above all in 1F1B. `step_s` is what was played.
StageSplit best_timed_split(std::span<const PieceCost> pieces, int stages, int micro_batches,
                            const pipelines::PipelineKind& kind, const Machine& machine, int chunks = 2);

// ---- stages that are replicated (Narayanan et al., PipeDream, 2019, §3.1) ----

struct ReplicatedStage {
  std::size_t end = 0;  // one past its last piece
  int replicas = 1;     // each takes every replicas-th micro-batch
  std::uint64_t memory_bytes = 0;
};
struct ReplicatedPlan {
  std::vector<ReplicatedStage> stages;
  double slowest_s = 0;  // a step's seconds in the slowest stage or over the slowest cut
  bool fits = true;      // else no plan does, and `stages` is empty
};

// The plan with the shortest beat on at most `workers` workers. A stage's step is the longer of its micro-batches'
// compute, divided by its replicas, and the ring all-reduce of its gradient over them; a replica of a stage holds as
// many micro-batches as workers from there on are for each replica, in 1F1B.
ReplicatedPlan best_plan(std::span<const PieceCost> pieces, int workers, int micro_batches, const Machine& machine);

// Seconds of a ring all-reduce.
double ring_seconds(double bytes, int workers, const Machine& machine);

}  // namespace trireme::mesh
