// One step's gradient: the batch in pieces, forward and backward through each, and the exchange with the other workers.
//
// Every piece's loss is scaled by its samples over those of all workers, so that the sum over pieces and workers is
// the mean over the global batch, whoever has how many. With --deterministic the pieces are micro-batches and their
// gradients are summed by one balanced binary tree over all of the step, of which each worker has a subtree:
// sum(lo, hi) = sum(lo, mid) + sum(mid, hi). Running statistics, too: each micro-batch starts from those before the
// step, and their mean comes after it.
#pragma once
#include "trireme/data/loader.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/train/config.h"
#include "trireme/train/workload.h"

namespace trireme::train {

// What a step measured, over all workers; times are this worker's.
struct StepOutcome {
  double loss = 0;                                  // mean over the global batch
  double accuracy = 0;                              // on it, while training
  bool stop = false;                                // some worker was asked to stop
  double begin = 0, forward_s = 0, backward_s = 0;  // backward with what it waited for the exchange
};

class Gradients {
 public:
  Gradients(const Config& config, Workload& work, DataParallel& net, Communicator& world);

  // When it returns every parameter's .grad is the global batch's. `stop`: this worker was asked to.
  StepOutcome compute(const data::Item& item, bool stop);

 private:
  struct Totals {
    double loss = 0, correct = 0, of = 0, forward_s = 0, backward_s = 0;
  };
  // Forward and, scaled by samples over `globally`, the loss of samples [begin, end) of the batch.
  torch::Tensor forward(const data::Item& item, std::int64_t begin, std::int64_t end, std::int64_t piece);
  void in_pieces(const data::Item& item, bool stop);
  void by_tree(const data::Item& item, bool stop);
  using Sums = std::vector<torch::Tensor>;
  Sums sum(const data::Item& item, std::int64_t low, std::int64_t high);
  Sums leaf(const data::Item& item, std::int64_t piece);
  void tell(bool stop);

  const Config& config_;
  Workload& work_;
  DataParallel& net_;
  Communicator& world_;
  const std::int64_t piece_;   // samples
  const std::int64_t pieces_;  // of this worker in a full step
  std::vector<torch::Tensor> parameters_, statistics_, before_;
  std::vector<torch::Tensor> counters_, counted_;  // batches that normalization has seen; before the step
  Totals totals_;
};

}  // namespace trireme::train
