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
// net.whole_weights() gives them at any time.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/grad/exchange_times.h"
#include "trireme/mesh/saving.h"
#include "trireme/nn/chain.h"
#include "trireme/parallel/mesh.h"
#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme {

namespace parallel {
class Sharded;
}

// What is cut into one part per worker: each kind has also what is named before it.
using ShardKind = mesh::Saving::Shard;

struct ShardedNetOptions {
  ShardKind what = ShardKind::parameters;
  std::size_t segment = 1;              // pieces of the chain in a unit, which is gathered and exchanged as one
  bool recompute = false;               // keep only what enters each unit, and compute the rest again for backward
  int micro_batches = 1;                // that a batch is computed in, one after the other
  bool accumulate_whole = false;        // micro-batches add up whole gradients, which are exchanged once; else each is
  bool check_finite = false;            // look for NaN and infinity before the exchange; see bad_gradients()
  std::optional<sync::Turn> turn = {};  // none: in the background where a core is spare, else in line
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

  // ---- What a checkpoint keeps. Collective, but for shard_state().

  // Copies of the whole weights, under the model's names; where not `everywhere` rank 0 alone is given them.
  nn::Named whole_weights(bool everywhere = true);
  // Every worker has the same. Throws DataError naming what is missing or of another shape, and has changed nothing.
  void load_weights(const nn::Named& whole);
  // This worker's pieces under the names of their parameters, to name an optimizer's state: "<parameter>.<quantity>".
  const nn::Named& named_parameters() const;
  // From such a state to what one worker's would be: rows of a piece's length become tensors of the parameter's shape,
  // anything else passes.
  nn::Named whole_state(const nn::Named& of_pieces, bool everywhere = true);
  // The reverse: copies of what of it belongs to this worker's pieces; the rest is left out.
  nn::Named shard_state(const nn::Named& whole) const;

  // With check_finite: what the last step met, the same list on every rank; empty when all was well.
  const std::vector<BadGradient>& bad_gradients() const;
  // What the last step's exchanges cost this worker.
  ExchangeTimes times() const;
  // One line: how many units of which sizes, over how many workers, in line or in the background.
  std::string describe() const;
  // What all this is made of, for Trireme's own use.
  parallel::Sharded& sharded();

  ShardedNet(ShardedNet&&) noexcept;
  ~ShardedNet();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
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
