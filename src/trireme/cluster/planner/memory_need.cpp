#include "trireme/cluster/planner/memory_need.h"

#include <algorithm>
#include <cmath>

#include "trireme/compress/codecs.h"
#include "trireme/mesh/schedule.h"

namespace trireme::cluster {
namespace {

double activations(const Profile& profile) {
  double bytes = 0;
  for (const auto& layer : profile.layers) bytes += static_cast<double>(layer.activation_bytes);
  return bytes;
}

// Of the weights: what a codec carries over, and a model that is averaged beside the one that trains.
double extra_copies(const Candidate& candidate) {
  if ((candidate.on_mesh ? candidate.mesh.data : candidate.workers) == 1) return 0;
  const auto codec = compress::Choice::parse(candidate.compress);
  const bool carries = !codec.none() && codec.kind->error != compress::CodecKind::Error::no_such;
  return (carries ? 1 : 0) + (candidate.traits.exchanges && !candidate.traits.buckets ? 1 : 0);
}

double without_mesh(const Question& question, const Candidate& candidate) {
  const double weights = static_cast<double>(question.profile.gradient_bytes());
  return weights * (question.state_factor + extra_copies(candidate)) + activations(question.profile);
}

double state_factor(const Question& question, const Candidate& candidate) {
  const double state = question.state_factor, share = 1.0 / candidate.mesh.data;
  switch (candidate.saving.shard) {
    case mesh::Saving::Shard::none:
      return state;
    case mesh::Saving::Shard::optimizer:
      return std::min(state, 2 + (state - 2) * share);
    case mesh::Saving::Shard::gradients:
      return std::min(state, 1 + (state - 1) * share);
    case mesh::Saving::Shard::parameters:
      return state * share;
  }
  return state;
}

// Recomputed: inputs of segments are kept, and one segment at a time is whole.
double kept_of_micro_batch(const Question& question, const Candidate& candidate) {
  const auto& layers = question.profile.layers;
  const auto every = static_cast<std::size_t>(candidate.saving.recompute_every);
  double bytes = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (every == 0) bytes += static_cast<double>(layers[i].activation_bytes);
    if (every > 0 && i % every == 0) bytes += static_cast<double>(layers[i == 0 ? 0 : i - 1].output_bytes);
  }
  return bytes / candidate.micro_batches / (candidate.mesh.pipe * candidate.mesh.tensor);
}

double on_mesh(const Question& question, const Candidate& candidate) {
  const auto& kind = pipelines::find_kind(candidate.schedule);
  const int chunks = kind.in_chunks && candidate.mesh.pipe > 1 ? 2 : 1;
  const double held =
      kind.most_held(candidate.mesh.pipe, candidate.micro_batches, chunks, candidate.mesh.pipe - 1);  // the least
  const double weights =
      static_cast<double>(question.profile.gradient_bytes()) / (candidate.mesh.pipe * candidate.mesh.tensor);
  return weights * (state_factor(question, candidate) + extra_copies(candidate)) +
         kept_of_micro_batch(question, candidate) * held / chunks;
}

}  // namespace

std::uint64_t memory_needed(const Question& question, const Candidate& candidate) {
  return static_cast<std::uint64_t>(
      std::ceil(candidate.on_mesh ? on_mesh(question, candidate) : without_mesh(question, candidate)));
}

std::uint64_t memory_there(const Question& question, int workers) {
  if (question.memory_bytes > 0) return question.memory_bytes;
  std::uint64_t least = 0;
  int first = 0;
  for (const auto& node : question.cluster.nodes) {
    if (first >= workers) break;
    const std::uint64_t own = node.worker_memory();
    if (own > 0) least = least == 0 ? own : std::min(least, own);
    first += node.count * node.workers;
  }
  return least;
}

}  // namespace trireme::cluster
