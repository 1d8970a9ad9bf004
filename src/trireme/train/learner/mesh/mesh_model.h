// A model on a mesh: what this worker holds of it, how that is judged and how it becomes whole again.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "trireme/data/dataset.h"
#include "trireme/mesh/hybrids.h"
#include "trireme/mesh/timing.h"
#include "trireme/parallel/memory_formula.h"
#include "trireme/parallel/mesh.h"
#include "trireme/parallel/pipeline/pipeline.h"
#include "trireme/parallel/shard/shard.h"
#include "trireme/parallel/tensor/tensor_parallel.h"
#include "trireme/parallel/tensor_memory.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/evaluate.h"
#include "trireme/train/learner/workload.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

class MeshModel {
 public:
  // Cuts the model of `work`, which can then not be run as a whole any more. Collective over the mesh. Throws
  // ConfigError where it cannot be cut like this, saying what is possible.
  MeshModel(const Config& config, Workload& work, Mesh& mesh);

  Mesh& mesh() { return mesh_; }
  Pipeline& pipeline() { return *pipeline_; }
  const Pipeline& pipeline() const { return *pipeline_; }
  torch::nn::Module& part() { return pipeline_->part(); }
  parallel::Sharded* sharded() { return sharded_.get(); }  // null where nothing is
  // Whether this worker counts what all parts of the last stage's layers know alike.
  bool tells() const {
    return pipeline_->last() && mesh_.place().tensor == 0 && (!gathers_batch() || mesh_.place().data == 0);
  }
  // AlexNet's hybrid: losses and scores are of the samples of all workers.
  bool gathers_batch() const { return mesh::find_hybrid(config_.hybrid).gathers_batch; }
  // Then only these parameters' gradients are summed over the workers; the others are parts.
  NamedTensors exchanged();
  // After the last backward of a step, where something is sharded.
  void finish_shards();

  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target);
  Score score(const torch::Tensor& output, const torch::Tensor& target);
  // On data it did not learn from; replicas share the samples. Collective over the mesh.
  Evaluation evaluate(const data::Dataset& set);

  // The sum of squares of the gradients of the whole model, each counted once. Collective over the replica.
  double square_of_gradients();
  // Squares of a parameter's part become those of it all (OptimizerOptions); empty where none is cut.
  std::function<void(const std::string& parameter, std::span<double> squares)> over_parts();
  // Tensors named "<prefix><parameter or buffer>[.<quantity>]" of every worker, whole, at rank 0. Collective.
  NamedTensors whole(const NamedTensors& local);
  // What this worker holds of a whole checkpoint.
  LoadedCheckpoint own_part(const LoadedCheckpoint& checkpoint) const;

  // At the begin of a step's compute, and at its end with the optimizer's state: what is there, for the report.
  void begin_step();
  void note_memory(Optimizer& optimizer);

  std::uint64_t bytes_sent();                                  // along the pipe and tensor axes, by this worker
  std::string describe() const;                                // one line for the header
  std::size_t parameter_count() const { return parameters_; }  // of the whole model
  // What the pipeline did, beside what its schedule says it should, of `seconds` of training. Collective over the
  // replica; the first worker of the mesh gets the numbers and lines for the user.
  struct Report {
    nlohmann::json numbers;
    std::vector<std::string> lines;
  };
  Report report(double seconds);

 private:
  void shard();
  void split_layers(const torch::Tensor& example);
  // Null where it is whole.
  const parallel::Cut* cut_of(const std::string& holder, const torch::Tensor& tensor) const;
  std::string cut_holder(const std::string& name) const;  // the parameter or buffer that is cut; empty: none
  // The longest name of something held here that `name` begins with; empty if there is none.
  std::string holder_of(const std::string& name) const;

  nlohmann::json memory_numbers();
  struct StageTimes {
    pipelines::Costs of_parts;    // seconds of a micro-batch
    double busy = 0;              // the share of the time, over all stages
    std::vector<double> idle_ms;  // a step, by stage
    double latency_ms = 0;        // of a step's first micro-batch, at the first stage
  };
  StageTimes stage_times(double seconds);

  parallel::MemoryWatch memory_;
  const Config& config_;
  Workload& work_;
  Mesh& mesh_;
  nn::Chain chain_;
  std::optional<TensorParallel> tensor_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<parallel::Sharded> sharded_;
  std::size_t parameters_ = 0;
  std::vector<parallel::PieceMemory> pieces_;             // of a micro-batch, of the pieces that are here
  double rest_before_ = 0, activations_ = 0, state_ = 0;  // bytes, the largest seen
  int optimizer_tensors_ = 0, noted_ = 0;
  std::string split_;  // how it was cut, in words
};

}  // namespace trireme::train
