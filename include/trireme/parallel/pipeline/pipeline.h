// A model cut into stages, one after the other on the workers of a mesh's pipe axis, fed micro-batch by micro-batch:
//
//   trireme::Mesh mesh(world, {.data = 2, .pipe = 2});
//   auto net = trireme::pipeline(model, mesh, {.micro_batches = 8});  // a torch::nn::Sequential
//   auto replicas = trireme::data_parallel(net.part(), mesh.data());
//   torch::optim::SGD optimizer(net.part().parameters(), 0.1);
//   ... net.step({.input = input, .target = target, .loss = loss, .replicas = &replicas}); optimizer.step();
//
// Every worker of a replica is given the same batch; the first stage reads its input, the last its target. All calls
// are collective over the pipe axis, and throw as collectives do; then only the destructor may be called. Mesh and
// model must outlive it.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/grad/data_parallel.h"
#include "trireme/nn/chain.h"
#include "trireme/parallel/mesh.h"

namespace trireme {

namespace parallel {
class Stage;
class TiedWeights;
struct StageParameters;
}  // namespace parallel

struct PipelineOptions {
  std::string schedule = "1f1b";  // gpipe, 1f1b, interleaved, zero-bubble or pipedream
  int micro_batches = 8;
  int chunks = 2;                     // parts a stage, of interleaved
  std::vector<std::size_t> starts{};  // the piece each part begins with, the first 0; empty: equal weights
  std::size_t recompute = 0;          // 0: keep all activations; k: of every k pieces only what goes in
  std::size_t segment = 0;            // pieces that share parameters' comings and goings (sharding); 0: all
  bool vertical_sync = false;         // pipedream: all stages use the version that the first one used
  bool release = true;                // give back the memory of what other stages hold
};

// What the stages of a pipeline did since the last clear(), on this worker.
struct PipelineUsage {
  std::vector<double> forward_s, backward_s, weights_s;  // by chunk
  double waited_s = 0;                                   // for messages
  double latency_s = 0;  // of the first micro-batch of steps, from its forward to the end of its backward here
  std::int64_t steps = 0;
  double busy_s() const;
};

class Pipeline {
 public:
  // Throws ConfigError where the model has too few pieces. What crosses from stage to stage is learned from the first
  // batch, or from `example`, at least one sample; then what other stages hold is given back.
  Pipeline(torch::nn::Module& model, nn::Chain chain, Mesh& mesh, const PipelineOptions& options = {},
           const torch::Tensor& example = {});
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  struct Batch {
    torch::Tensor input, target;
    // At the last stage: what backward begins with, of a micro-batch. Its gradients are summed over micro-batches.
    std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)> loss;
    DataParallel* replicas = nullptr;  // over the data axis: exchanges gradients with the last backward
    int micro_batches = 0;             // another number of them for this batch; 0: as in the options
    bool sums_tied = true;             // gradients of tied() are summed over their stages; else the caller does it
    // Asynchronous schedules: steps the optimizer with this micro-batch's gradients, and drops them.
    std::function<void()> update;
    // Before each forward, to seed what is random.
    std::function<void(int micro_batch, int part)> before_forward;
  };
  // Forward and backward of a batch: gradients are added to .grad. Fewer samples than micro-batches make fewer of them.
  void step(const Batch& batch);
  // Takes part in the exchanges of a step with nothing, where this replica has no samples.
  void skip(const Batch& batch);
  // Asynchronous schedules: ends what is under way, as after the last step. Others have nothing to end.
  void drain(const Batch& batch);
  // Forward alone; the output at the last stage, undefined elsewhere.
  torch::Tensor evaluate(const torch::Tensor& input);

  // What this worker holds of the model, under the model's names.
  torch::nn::Module& part();
  bool first() const;  // stage
  bool last() const;
  bool synchronous() const;
  int parts() const;
  const PipelineOptions& options() const;
  // Bytes that this worker sent along the pipe axis.
  std::uint64_t bytes_sent() const;

  const PipelineUsage& usage() const;
  void clear_usage();

  // Of Trireme's own use: what this stage holds, its parts one after the other, the weights that other stages hold too.
  const parallel::StageParameters& stage_parameters() const;
  std::vector<parallel::Stage*> stages();
  parallel::TiedWeights& tied();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline Pipeline pipeline(torch::nn::Sequential model, Mesh& mesh, const PipelineOptions& options = {}) {
  return Pipeline(*model, nn::chain_of(model), mesh, options);
}
inline Pipeline pipeline(torch::nn::Module& model, nn::Chain chain, Mesh& mesh, const PipelineOptions& options = {}) {
  return Pipeline(model, std::move(chain), mesh, options);
}

}  // namespace trireme
