// One step's gradient: the batch in pieces, forward and backward through each, and the exchange with the other workers.
//
// Every piece's loss is scaled by its samples over those of all workers, so that the sum over pieces and workers is
// the mean over the global batch, whoever has how many. With --deterministic the pieces are micro-batches and their
// gradients are summed by one balanced binary tree over all of the step, of which each worker has a subtree:
// sum(lo, hi) = sum(lo, mid) + sum(mid, hi). Running statistics, too: each micro-batch starts from those before the
// step, and their mean comes after it.
#pragma once
#include <functional>

#include "trireme/data/loader.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

// The seed of what is random in a piece of a step: a stream of its own.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position, std::uint64_t piece);

// What a step measured, over all workers that took part in it; times are this worker's.
struct StepOutcome {
  double loss = 0;    // mean over the batch
  Score score;        // on it, while training
  bool stop = false;  // some worker was asked to stop
  double begin = 0;   // in now_seconds()
  double forward_s = 0;
  double backward_s = 0;       // without what it waited for the exchange
  double held_up_s = 0;        // by --straggle, between the two
  double exposed_s = 0;        // waited for the exchange
  double communication_s = 0;  // overlapped or not
  double own_s() const { return forward_s + backward_s + held_up_s; }
};

// What the gradient of a worker's batch is scaled to.
enum class Scale {
  share,  // of the global batch's mean: the sum over workers is that mean
  own,    // the mean over the worker's own batch
};

class Gradients {
 public:
  virtual ~Gradients() = default;
  // When it returns every parameter's .grad is the exchanged one: with a world of one, this worker's. `stop`: this
  // worker was asked to. `hold_up` says for how many seconds it is to be slowed down, given what it usually computes.
  using HoldUp = std::function<double(double compute_s)>;
  virtual StepOutcome compute(const data::Item& item, bool stop, const HoldUp& hold_up = {}) = 0;

  // Of the last step, the same list on every worker that took part; empty when all was well.
  virtual std::vector<BadGradient> bad_gradients() = 0;
  // Scales them so that the norm of all together is at most `most`. Collective.
  virtual void clip(double most) = 0;

  // True where weights change while a step computes: `update` is then called whenever the optimizer is to step.
  virtual bool steps_itself() const { return false; }
  std::function<void()> update;
  // Ends what such a step left under way.
  virtual void drain() {}
};

// Of a worker that has the whole model.
class WholeGradients : public Gradients {
 public:
  // `rank` is this worker's in the run; `world` that of the workers.
  WholeGradients(const Config& config, Workload& work, DataParallel& net, Communicator& world, int rank, Scale scale);
  StepOutcome compute(const data::Item& item, bool stop, const HoldUp& hold_up = {}) override;
  std::vector<BadGradient> bad_gradients() override { return net_.bad_gradients(); }
  void clip(double most) override { net_.clip_grad_norm(most); }

 private:
  struct Totals {
    double loss = 0, score = 0, of = 0, forward_s = 0, backward_s = 0, held_up_s = 0;
  };
  double whole(const data::Item& item) const;  // samples that a piece's share is of
  void linger(const HoldUp& hold_up);
  // Forward and the scaled loss of samples [begin, end) of the batch.
  torch::Tensor forward(const data::Item& item, std::int64_t begin, std::int64_t end, std::int64_t piece);
  // The same of a sample that does not count.
  torch::Tensor forward_uncounted();
  // Pieces of the step: as many on every worker where they meet in forward.
  std::int64_t turns(const data::Item& item) const;
  void in_pieces(const data::Item& item, bool stop, const HoldUp& hold_up);
  void by_tree(const data::Item& item, bool stop, const HoldUp& hold_up);
  using Sums = std::vector<torch::Tensor>;
  Sums sum(const data::Item& item, std::int64_t low, std::int64_t high);
  Sums leaf(const data::Item& item, std::int64_t piece);
  void tell(bool stop);

  const Config& config_;
  Workload& work_;
  DataParallel& net_;
  Communicator& world_;
  const int rank_;
  const Scale scale_;
  const std::int64_t piece_;   // samples
  const std::int64_t pieces_;  // of this worker in a full step
  std::vector<torch::Tensor> parameters_, statistics_, before_;
  std::vector<torch::Tensor> counters_, counted_;  // batches that normalization has seen; before the step
  Totals totals_;
  double usual_backward_s_ = 0;
};

}  // namespace trireme::train
