// Which mesh is fastest: every data × pipe × tensor that uses all workers, with its predicted step and memory.
//
// Pieces were measured on one worker with micro-batches of batch / micro_batches samples. Along data each replica takes
// its share of every micro-batch and gradients are all-reduced by a ring, hidden by the last backward except the last
// piece's; along pipe the chain is cut by best_split and its schedule played by pipelines::time_of; along tensor pieces
// that can be split take their share of compute, weights and activations, and all-reduce inside the layer.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/mesh/mesh_shape.h"
#include "trireme/mesh/saving.h"
#include "trireme/mesh/split/stage_split.h"

namespace trireme::mesh {

struct TensorCost {
  bool splittable = false;
  std::uint64_t communicated_bytes = 0;  // all-reduced over the tensor axis for a micro-batch, forward and backward
  bool fully_connected = false;          // what --hybrid alexnet splits
};

// Where the pieces of one model were cut, by all that this depends on. One thread at a time.
struct MeshSplits : std::map<std::string, StageSplit> {};

struct MeshQuestion {
  std::span<const PieceCost> pieces;
  int workers = 1, batch = 1, micro_batches = 1;
  Machine machine;
  std::span<const TensorCost> tensor_costs;  // by piece; empty: none can be split
  std::string_view kind = "1f1b";            // of pipelines::kinds()
  int chunks = 2;                            // of a stage, for kinds in chunks
  Saving saving;
  // Seconds of an all-reduce of gradients over the replicas; none: a ring on the machine's links.
  std::function<double(double bytes, int replicas)> all_reduce = {};
  MeshSplits* splits = nullptr;  // kept for questions about the same pieces, where there is one
};

// What a stage's replicas exchange, and when.
struct StageWork {
  std::vector<std::size_t> pieces;         // in the order of the chain
  std::vector<double> parameter_bytes;     // of each, of one worker
  double last_backward_s = 0, done_s = 0;  // when its last backward began, and all it computes was done
};

struct MeshOption {
  MeshShape shape;
  bool possible = true;  // else `why` says why not, and nothing below counts
  double step_s = 0;
  std::uint64_t memory_bytes = 0;  // of the worker that needs most
  bool fits = true;
  std::string why;  // one line: where the time goes, or what is missing
  StageSplit split;
  std::vector<StageWork> stages;
  int micro_batches = 1;  // fewer than asked where a replica has fewer samples
};

// Best first; then those that do not fit, the smallest first; then those that cannot be. Throws ConfigError where the
// numbers are below 1 or tensor_costs are not one for each piece.
std::vector<MeshOption> rank_meshes(const MeshQuestion& question);
MeshOption predict_mesh(const MeshQuestion& question, const MeshShape& shape);

// What would fit when nothing does, a line for each of sharding, recomputation, both, and more workers as stages; where
// none helps, one line that names the piece that is too large.
std::vector<std::string> what_would_fit(const MeshQuestion& question);

}  // namespace trireme::mesh
