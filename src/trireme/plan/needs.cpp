#include "trireme/plan/needs.h"

#include <algorithm>
#include <cmath>

#include "trireme/compress/codecs.h"
#include "trireme/pipeline/schedule.h"

namespace trireme::plan {
namespace {

double activations(const Profile& profile) {
  double bytes = 0;
  for (const auto& layer : profile.layers) bytes += static_cast<double>(layer.activation_bytes);
  return bytes;
}

// Of the weights: what a codec carries over, and a model that is averaged beside the one that trains.
double extra_copies(const Way& way) {
  if ((way.on_mesh ? way.mesh.data : way.workers) == 1) return 0;
  const auto codec = compress::Choice::parse(way.compress);
  const bool carries = !codec.none() && codec.kind->error != compress::Kind::Error::no_such;
  return (carries ? 1 : 0) + (way.traits.exchanges && !way.traits.buckets ? 1 : 0);
}

double without_mesh(const Question& question, const Way& way) {
  const double weights = static_cast<double>(question.profile.gradient_bytes());
  return weights * (question.state_factor + extra_copies(way)) + activations(question.profile);
}

double state_factor(const Question& question, const Way& way) {
  const double state = question.state_factor, share = 1.0 / way.mesh.data;
  switch (way.saving.shard) {
    case Saving::Shard::none:
      return state;
    case Saving::Shard::optimizer:
      return std::min(state, 2 + (state - 2) * share);
    case Saving::Shard::gradients:
      return std::min(state, 1 + (state - 1) * share);
    case Saving::Shard::parameters:
      return state * share;
  }
  return state;
}

// Recomputed: inputs of segments are kept, and one segment at a time is whole.
double kept_of_micro_batch(const Question& question, const Way& way) {
  const auto& layers = question.profile.layers;
  const auto every = static_cast<std::size_t>(way.saving.recompute_every);
  double bytes = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (every == 0) bytes += static_cast<double>(layers[i].activation_bytes);
    if (every > 0 && i % every == 0) bytes += static_cast<double>(layers[i == 0 ? 0 : i - 1].output_bytes);
  }
  return bytes / way.micro_batches / (way.mesh.pipe * way.mesh.tensor);
}

double on_mesh(const Question& question, const Way& way) {
  const auto& kind = pipelines::find_kind(way.schedule);
  const int chunks = kind.in_chunks && way.mesh.pipe > 1 ? 2 : 1;
  const double held = kind.most_held(way.mesh.pipe, way.micro_batches, chunks, way.mesh.pipe - 1);  // the least
  const double weights = static_cast<double>(question.profile.gradient_bytes()) / (way.mesh.pipe * way.mesh.tensor);
  return weights * (state_factor(question, way) + extra_copies(way)) +
         kept_of_micro_batch(question, way) * held / chunks;
}

}  // namespace

std::uint64_t memory_needed(const Question& question, const Way& way) {
  return static_cast<std::uint64_t>(std::ceil(way.on_mesh ? on_mesh(question, way) : without_mesh(question, way)));
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

}  // namespace trireme::plan
