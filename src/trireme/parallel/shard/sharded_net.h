// Sharded training of any chain of modules, with any optimizer of LibTorch that treats each element by itself:
//
//   auto world = trireme::init();
//   auto net = trireme::shard(model, world, {.what = ShardKind::parameters});  // a torch::nn::Sequential
//   torch::optim::Adam optimizer(net.parameters(), 1e-3);                      // this worker's pieces
//   ... double loss = net.step(input, target, torch::cross_entropy_loss...);   // gradients of all workers
//       optimizer.step();
//
// Every worker calls the same in the same order. The model stays the caller's, but its weights are where they are used
// only while net.step() and net.evaluate() run them, and with `optimizer` and `gradients` current only from there on:
// net.sharded().whole_weights() gives them at any time.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "trireme/parallel/mesh.h"
#include "trireme/parallel/shard/shard.h"

namespace trireme {

using parallel::ShardKind;

struct ShardedNetOptions {
  ShardKind what = ShardKind::parameters;
  std::size_t segment = 1;        // pieces of the chain in a unit, which is gathered and exchanged as one
  bool recompute = false;         // keep only what enters each unit, and compute the rest again for backward
  int micro_batches = 1;          // that a batch is computed in, one after the other
  bool accumulate_whole = false;  // see parallel::ShardOptions, as for the rest
  bool check_finite = false;
  std::optional<sync::Turn> turn;
};

class ShardedNet {
 public:
  // From a chain's output and the target to the mean over their samples.
  using Loss = std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;

  // Collective: rank 0's parameters and buffers are everyone's. `data` must outlive it.
  ShardedNet(const torch::nn::Module& model, const nn::Chain& chain, Communicator& data,
             const ShardedNetOptions& options);

  // Forward and backward of this worker's samples, at least one; the number may differ from worker to worker. Then
  // parameters() have the gradient of the mean over the samples of all, which is returned. Collective.
  double step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss);
  // Without gradients, with the weights of the optimizer's last step. Collective.
  torch::Tensor evaluate(const torch::Tensor& input);

  // This worker's pieces, for an optimizer.
  std::vector<torch::Tensor> parameters() const;
  // Scales the gradients so that their norm is at most `most`; returns what it was. Collective.
  double clip_grad_norm(double most);
  // The mean over all workers of what is not learned: running statistics. Collective.
  void average_buffers();

  // With gradients, weights, states and times of its own.
  parallel::Sharded& sharded() { return *sharded_; }

 private:
  // How many micro-batches, the same on all, and the samples of all workers together.
  struct Plan {
    std::int64_t micro_batches, samples;
  };
  Plan agree(std::int64_t samples);

  Communicator& data_;
  const ShardedNetOptions options_;
  const nn::Named buffers_;
  std::unique_ptr<parallel::Stage> stage_;  // pointers: one holds the other's address
  std::unique_ptr<parallel::Sharded> sharded_;
  bool stepped_ = false;   // since the weights were gathered for a step: an optimizer has moved them
  bool outdated_ = false;  // the same, and they were not gathered for an evaluation either
};

inline ShardedNet shard(const torch::nn::Module& model, const nn::Chain& chain, Communicator& data,
                        const ShardedNetOptions& options = {}) {
  return ShardedNet(model, chain, data, options);
}
inline ShardedNet shard(torch::nn::Sequential model, Communicator& data, const ShardedNetOptions& options = {}) {
  return ShardedNet(*model, nn::chain_of(model), data, options);
}
// Over the data axis. Throws ConfigError where the mesh has several stages: there each stage is sharded by itself.
ShardedNet shard(const torch::nn::Module& model, const nn::Chain& chain, Mesh& mesh,
                 const ShardedNetOptions& options = {});
ShardedNet shard(torch::nn::Sequential model, Mesh& mesh, const ShardedNetOptions& options = {});

}  // namespace trireme
