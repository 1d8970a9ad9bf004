// A way to synchronize: who learns what from whom, and when. A state machine over flat memory, driven by the training
// loop; one file per strategy, one line in the list strategies/members.inc.
//
// Every worker calls, from one thread:
//
//   begin(replicas)                      collective; all weights are equal
//   per step: before_forward, (forward and backward: full buckets go to exchange()), after_backward, (the optimizer's
//   step), after_step                    as run_step.h has it
//   model(out)                           collective; at the end of epochs: the weights to judge and to keep
//   while (drain()) (the optimizer's step)
//   finish()                             collective; then every worker's weights are the result
//
// A synchronous strategy's workers take the same number of steps; an asynchronous one's take what they get from a
// common counter. Every wait has the communicator's deadline, and throws as its calls do.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/sync/exchange/bucket_exchange.h"
#include "trireme/sync/pace.h"
#include "trireme/sync/report.h"
#include "trireme/sync/traits.h"

namespace trireme::sync {

class CompressedMean;

// What one learner learns with. Most workers have one.
struct Replica {
  std::span<float> weights;   // what the next forward reads and the optimizer moves; in the transport's heap. Empty
                              // unless the strategy uses_weights
  std::span<float> gradient;  // of this step, after backward; empty unless it uses_gradient
};

struct Step {
  std::int64_t number = 0;  // this worker's, from 0; goes on counting after a resume
  double lr = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // What it is, as its row in the list says.
  const Traits& traits() const { return traits_; }

  // Takes full buckets of gradients while backward runs; null: they stay with this worker.
  virtual BucketExchange* exchange() { return nullptr; }
  // Whether after_backward() puts the mean of all workers' gradients in place of the replica's in this step: then every
  // worker's optimizer steps by it, also one that had none to give.
  virtual bool averages(std::int64_t step) const {
    (void)step;
    return false;
  }
  // The most norm of a gradient that the optimizer may step by, whatever else is asked for; 0: any.
  virtual double most_norm() const { return 0; }
  // Asked after after_backward(): whether the optimizer leaves this step out, as no gradient is in place yet.
  virtual bool skips_step() const { return false; }
  // In place of a momentum that was asked for.
  virtual Pace pace(double momentum) const { return {.momentum = momentum}; }
  // For how many of its first steps a worker takes the same batches as all others.
  virtual std::int64_t together() const { return 0; }
  // Whether all workers have come together when this step is done: a good time to agree on something.
  virtual bool meets(std::int64_t step) const {
    (void)step;
    return false;
  }

  // Memory for a replica's weights and gradient where not any will do; null: the communicator's heap.
  virtual std::shared_ptr<float[]> weights_memory(std::size_t count) {
    (void)count;
    return nullptr;
  }
  virtual std::shared_ptr<float[]> gradient_memory(std::size_t count) {
    (void)count;
    return nullptr;
  }

  virtual void begin(std::span<const Replica> replicas) = 0;
  virtual void before_forward(const Step& step) { (void)step; }
  virtual void after_backward(const Step& step) { (void)step; }
  virtual void after_step(const Step& step) { (void)step; }
  // In place of the rest of a step whose before_forward() was called: the weights are as if it had not been, and
  // nothing of it is under way. Collective where steps are.
  virtual void abandon(const Step& step) { (void)step; }
  // Between steps: what the last ones have under way has arrived, and is in report(). It changes nothing else.
  virtual void settle() {}
  // Puts one more gradient in place for the optimizer, if some are still under way. The same answer on every worker.
  virtual bool drain() { return false; }
  virtual void finish() = 0;

  // Writes what a user would call the model now; training goes on as if nobody had asked.
  virtual void model(std::span<float> out) = 0;

  // ---- What a checkpoint keeps besides the model, so that a stopped run goes on exactly. To be overwritten on resume,
  // after begin(); the next step is then what it would have been. Between steps.

  // Vectors in the order of the weights.
  struct Kept {
    std::string name;
    std::span<float> values;
    bool alike = true;  // on every worker
  };
  virtual std::vector<Kept> state() { return {}; }
  // A few numbers more. Throws DataError where they cannot be its own.
  virtual std::vector<double> numbers() const { return {}; }
  virtual void set_numbers(std::span<const double> numbers) { (void)numbers; }
  // What it sends codes by, by name.
  virtual std::vector<std::pair<std::string, CompressedMean*>> coded() { return {}; }

  virtual Report report() const { return {}; }

 protected:
  // As its row says; one that is another thing in its context says so.
  virtual void set_traits(const Traits& row) { traits_ = row; }

 private:
  friend struct Choice;  // makes it from its row
  Traits traits_;
};

}  // namespace trireme::sync
