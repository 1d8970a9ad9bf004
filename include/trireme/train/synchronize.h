// Any strategy in a program with a loop of its own, for any torch::nn::Module and any LibTorch optimizer:
//
//   auto world = trireme::init();
//   auto sync = trireme::synchronize(model, optimizer, world, {.strategy = "local-sgd:H=8", .compress = "int8"});
//   for (batch …) {
//     loss(model->forward(batch)).backward();
//     sync.step();                              // in place of optimizer.step(); drops the gradients
//   }
//   sync.finish();                              // the model is now the strategy's result, on every rank
//
// A loss is the mean over the rank's own batch; the mean over ranks is then of these means, so batches should be of the
// same size. Every rank takes the same number of steps, but with strategies where each goes at its own pace. Between
// steps the weights are this rank's, and may be ahead of where they will be judged: evaluate and save within
// with_model(). The learning rate is what the optimizer's param_groups say when step() is called.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"

namespace trireme {

struct SynchronizeOptions {
  std::string strategy = "allreduce";   // as --strategy of `trireme train`: NAME[:key=value,…]
  std::string compress = "none";        // as --compress: what is sent, in short
  std::string compress_rule;            // as --compress-rule: "fc*=topk:0.01,*.bias=none"
  double clip = 0;                      // the most norm of the gradient that is stepped by; 0: any
  bool skip_bad = false;                // a step whose gradients are not finite is left out; else step() throws Error
  std::string bucket_plan = "optimal";  // of strategies that exchange gradients in backward; as --bucket-plan
  std::int64_t steps_per_epoch = 0;     // for codecs that count epochs; 0: not known
  std::int64_t total_steps = 0;         // of a rank, for strategies with phases of the whole run; 0: not known
  std::uint64_t seed = 1;               // of what a strategy or codec draws; the same on every rank
  double timeout_s = 60;                // of every wait for servers; collectives have the communicator's
};

// What it has done on this rank.
struct SynchronizeReport {
  std::int64_t steps = 0;
  std::uint64_t bytes_sent = 0;  // payload
  double wait_s = 0;             // in which it waited for others
};

class Synchronizer {
 public:
  // Leaves gradients where they are while it lives: several backwards become one step.
  class NoSync {
   public:
    NoSync(NoSync&&) noexcept;
    ~NoSync();

   private:
    friend class Synchronizer;
    struct Held;
    explicit NoSync(std::unique_ptr<Held> held);
    std::unique_ptr<Held> held_;
  };
  [[nodiscard]] NoSync no_sync();

  // After backward: this rank's step. Throws Error naming a parameter whose gradient is not finite, and what the
  // collectives throw; then only the destructor may be called.
  void step();
  // While `use` runs the model is what the strategy says it is; training then goes on as if nobody had asked.
  // Collective.
  void with_model(const std::function<void()>& use);
  // What is under way is taken in and every rank's model becomes the result; the optimizer is as it was given. The last
  // call but for the destructor. Collective.
  void finish();

  SynchronizeReport report() const;
  // What it does with the optimizer, in one line: "local-sgd:H=8, int8" and, where the strategy wants them, another
  // momentum and rate.
  std::string describe() const;

  Synchronizer(Synchronizer&&) noexcept;
  Synchronizer& operator=(Synchronizer&&) noexcept;
  // Takes the hooks off the model, whose parameters keep what they are. Of this rank alone.
  ~Synchronizer();

  // Collective: ranks whose models differ in names, shapes or types are named; then rank 0's parameters and buffers are
  // everyone's. All must outlive it. Throws ConfigError where strategy, codec, optimizer and model do not go together.
  Synchronizer(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Communicator& world,
               const SynchronizeOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline Synchronizer synchronize(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Communicator& world,
                                const SynchronizeOptions& options = {}) {
  return Synchronizer(model, optimizer, world, options);
}
// For shared pointers and LibTorch's module holders.
template <typename Holder>
Synchronizer synchronize(Holder& model, torch::optim::Optimizer& optimizer, Communicator& world,
                         const SynchronizeOptions& options = {}) requires requires {
  static_cast<torch::nn::Module&>(*model);
}
{ return Synchronizer(*model, optimizer, world, options); }

}  // namespace trireme
