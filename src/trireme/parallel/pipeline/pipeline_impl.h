// The inside of a Pipeline: what a stage holds, and what is under way. Private to the folder.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/mesh/schedule.h"
#include "trireme/parallel/pipeline/activation_channel.h"
#include "trireme/parallel/pipeline/pipeline.h"
#include "trireme/parallel/pipeline/stage.h"
#include "trireme/parallel/pipeline/stage_parameters.h"
#include "trireme/parallel/pipeline/versions.h"

namespace trireme {

struct Pipeline::Impl {
  Impl(torch::nn::Module& whole, nn::Chain pieces, Mesh& grid, const PipelineOptions& wanted);

  // Before the first batch, or the like of it.
  void learn(const torch::Tensor& example);

  using Action = pipelines::Action;
  using Key = std::pair<int, int>;  // micro-batch, chunk

  void run(std::span<const Action> actions, const Batch& batch);
  void act(const Action& action, const Batch& batch, bool final);
  void forward(const Action& action, const Batch& batch);
  void backward(const Action& action, bool final);
  void update(const Action& action, const Batch& batch);
  // Throws ConfigError that names what a step cannot do without.
  void check(const Batch& batch) const;
  void begin_loss(int micro_batch, const nn::Values& outputs, const Batch& batch);
  int part_of(int chunk) const { return chunk * stages + stage; }
  bool last_part(int number) const { return number + 1 == stages * chunks; }
  std::int64_t version_for(int micro_batch) const;
  void forget(int micro_batch);

  torch::nn::Module& model;
  Mesh& mesh;
  const PipelineOptions options;
  const pipelines::PipelineKind& kind;
  const nn::Chain chain;
  const int stages, stage, chunks;
  const parallel::Starts starts;
  parallel::StageParameters held;
  std::shared_ptr<torch::nn::Module> part;
  parallel::TiedWeights tied;
  std::optional<parallel::ActivationChannel> channel;
  std::vector<parallel::Stage> parts;
  bool apart = true;  // each parameter's gradient comes in one backward

  // Of micro-batches under way; `first` is the number of the batch's first one.
  int first = 0, count = 0;
  std::map<int, std::int64_t> rows;
  std::map<Key, nn::Values> activations, gradients;  // in, or ready to be sent
  std::optional<parallel::WeightVersions> versions;
  std::map<int, std::int64_t> version_of;
  std::int64_t stream_from = 0;  // the version with which the stream at hand began
  PipelineUsage usage;
  double latency_from = 0;
};

// Of n samples in m parts, where part k begins.
inline std::int64_t begin_of(std::int64_t n, std::int64_t m, std::int64_t k) { return n * k / m; }

}  // namespace trireme
