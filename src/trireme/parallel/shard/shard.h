// Optimizer state, gradients and parameters of a stage, cut into one shard per worker of the data axis (ZeRO 1 to 3).
//
//   Stage stage(*model, chain, 0, chain.size(), {.segment = 1});
//   Sharded sharded(units_of(stage), mesh.data(), {.what = ShardKind::parameters});
//   stage.set_watch(&sharded);  // of a pipeline: units_of(pipe.stages()), sharded.watch(pipe.stages())
//   auto optimizer = make_optimizer("adam", sharded.shards());
//   ... stage.forward, stage.backward of all micro-batches ...
//   sharded.finish();          // shards have .grad
//   optimizer->step(lr);
//   sharded.gather_weights();
//
// It takes the place of DataParallel. Made and used by one thread, and by every worker of the axis in the same order:
// with `parameters` an evaluation too is collective. What is under way belongs to the communicator's thread until it
// is waited for: nothing here touches it before (LibTorch is not built for TSan; tests run both ways of taking turns).
#pragma once
#include <torch/torch.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/nn/chain.h"
#include "trireme/parallel/memory_formula.h"
#include "trireme/parallel/pipeline/stage.h"
#include "trireme/parallel/shard/exchange.h"
#include "trireme/sync/exchange/bucket_all_reduce.h"

namespace trireme::parallel {

struct ShardOptions {
  ShardKind what = ShardKind::parameters;  // not none
  Op op = Op::sum;                         // or avg: what becomes of the workers' gradients
  // Micro-batches add up whole gradients until the last, and are exchanged once. Otherwise, with `gradients` and
  // `parameters`, each is exchanged, and no whole gradient outlives the backward of its unit.
  bool accumulate_whole = false;
  bool check_finite = false;       // look for NaN and infinity before the exchange; see bad_gradients()
  std::optional<sync::Turn> turn;  // none: in the background where a core is spare, else in line
  int threads = 0;                 // that this worker computes with, to tell whether one is; 0: LibTorch's setting
  std::set<std::string> apart;     // parameters that lie alone, as on the other stages that have them: see sum_tied()
};

class Sharded : public SegmentWatch, public GradientExchange {
 public:
  // One unit for each segment of a stage: its parameters, which become views of flat memory. One that several units
  // use is there for all of them; one that needs no gradient now is never given one. Collective: workers whose units
  // differ are named, and rank 0's weights become everyone's. `data` must outlive it.
  Sharded(std::vector<nn::Named> units, Communicator& data, const ShardOptions& options);
  ~Sharded() override;
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;

  // Hears all of these stages: the units are those of the first, then of the next. It must outlive their use.
  void watch(std::span<Stage* const> stages);
  void before_forward(std::size_t segment) override;
  void after_forward(std::size_t segment) override;
  void before_backward(std::size_t segment) override;
  void after_backward(std::size_t segment, bool last) override;

  // Waits until the gradients of all workers are added up. Collective.
  void finish() override;
  // What this worker steps: of each parameter that learns the piece it owns, if any, under the parameter's name, as a
  // row. Between finish() and zero_grad() with its gradient, if any worker has made one. For optimizers that treat each
  // element by itself.
  const nn::Named& shards() const;
  // After the optimizer's step: whole weights are made from the pieces; with `parameters`, when they are next used.
  // Collective.
  void gather_weights();
  // The same, while the caller goes on: only what runs in the stage finds the new weights.
  void start_gather_weights();
  // Lets go of the pieces' gradients. The next step begins with none in any case.
  void zero_grad() override;

  // After finish(): adds up the gradients of parameters that several stages have, over those stages' workers of this
  // place on the data axis. They must lie `apart` on all of them. Collective over `stages`.
  void sum_tied(Communicator& stages, const std::vector<std::string>& parameters);
  // Of this worker's pieces, all or those of the parameters named: the sum of the squares of their gradients.
  double local_squares() const;
  double local_squares(const std::set<std::string>& parameters) const;
  // The 2-norm of the gradients of all workers of the axis. The same on each. Collective.
  double grad_norm();
  void scale_gradients(double factor);
  // With check_finite.
  const std::vector<BadGradient>& bad_gradients() const override;

  int ranks() const override;
  void tell(const std::array<float, kTold>& numbers) override;
  std::array<float, kTold> told() const override;

  // Who is given whole tensors.
  enum class At { all_workers, rank0 };
  // Copies, under all names that were given. Collective.
  nn::Named whole_weights(At at = At::all_workers);
  // Every worker has the same; then whole weights are current. Throws DataError naming what is missing or of another
  // shape, and has changed nothing. Collective.
  void load_weights(const nn::Named& whole);
  // From the state of an optimizer of shards(), "<parameter>.<quantity>", to what one worker's would be: rows of a
  // piece's length become tensors of the parameter's shape, anything else passes. Collective.
  nn::Named whole_state(const nn::Named& of_shards, At at = At::all_workers);
  // The reverse: what of it belongs to this worker's pieces; the rest is left out. Copies.
  nn::Named shard_state(const nn::Named& whole) const;

  // Of the last step, with the gather_weights() that followed.
  ShardTimes shard_times() const;
  ExchangeTimes times() const override;
  // Elements of the largest unit, for MemoryFormula.
  std::size_t largest_unit() const;
  // Over how many workers, too.
  std::string describe() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The mean over all workers of what is not learned: running statistics. Collective.
void average_buffers(Communicator& data, const nn::Named& buffers);

// The parameters of each segment.
std::vector<nn::Named> units_of(const Stage& stage);
std::vector<nn::Named> units_of(std::span<Stage* const> stages);

}  // namespace trireme::parallel
