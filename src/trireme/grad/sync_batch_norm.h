// Batch normalization over the samples of all ranks. While a SyncBatchNorm lives, every batch normalization in training
// mode that its thread runs with gradients on takes its statistics over the whole group: any model, unchanged, for it
// works where LibTorch looks up the operator and not where a module is written.
//
// Symbols: N values of a channel on all ranks, μ and σ² their mean and variance, x̂ = (x − μ)/σ, y = w·x̂ + b.
//   forward   ranks gather (n, mean, sum of squared deviations) of each channel and merge them pairwise (Chan 1983)
//   backward  dx = w/σ · (dy − Σdy/N − x̂·Σ(dy·x̂)/N), the sums over all ranks; dw and db over this rank's samples, for
//             the exchange of gradients averages them like all others
// Cost per layer and step: one all-gather of 2C + 1 numbers, one all-reduce of 2C.
#pragma once
#include "trireme/collective/run/communicator.h"

namespace trireme::grad {

class SyncBatchNorm {
 public:
  // Collective: takes a group of its own, so that its calls and those of buckets do not meet.
  explicit SyncBatchNorm(Communicator& world);
  ~SyncBatchNorm();
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;

  Communicator& group() { return group_; }

  // While it lives, what this thread runs forward does not count, and takes part only because the others wait for it:
  // for a rank without samples, with any sample and a loss of zero.
  class Uncounted {
   public:
    Uncounted();
    ~Uncounted();
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    const bool before_;
  };

 private:
  Communicator group_;
  SyncBatchNorm* previous_;
};

}  // namespace trireme::grad
