// The gradients of a FlatParameters: brought together as autograd makes them, added up over all workers shard by shard.
#pragma once
#include "trireme/parallel/shard/flat_parameters.h"

namespace trireme::parallel {

class FlatGradients {
 public:
  // `stays_whole`: each worker keeps room for all of it, and the shard is a part of that. Otherwise the whole is there
  // from collect() until its sum has left, and later sums are added to the shard.
  FlatGradients(Exchange& exchange, const FlatParameters& flat, Op op, bool stays_whole);

  // A new step: nothing was collected.
  void begin();
  // Adds the parameters' .grad and lets go of them; a part without one adds nothing. `seen` is told the part's number
  // and its gradient for each that has one.
  template <typename Seen>
  void collect(Seen&& seen) {
    settle();
    torch::NoGradGuard no_grad;
    make_room();
    const auto& parts = flat_.parts();
    for (std::size_t k = 0; k < parts.size(); ++k) {
      auto& gradient = parts[k].parameter.mutable_grad();
      if (gradient.defined()) seen(k, gradient);
      add(k, gradient);
      gradient.reset();
    }
    collected_ = true;
  }
  // Starts to add up what was collected. Collective: workers that have collected nothing give zeros.
  void scatter();
  // Returns when nothing is under way any more.
  void settle();
  bool scattered() const { return sums_ > 0; }
  // What is under way; null if nothing.
  Work* pending() { return under_way_ ? &work_ : nullptr; }

  // After settle(): this worker's part of the sum.
  const torch::Tensor& shard() const { return shard_; }

 private:
  void make_room();
  void add(std::size_t part, const torch::Tensor& gradient);

  Exchange& exchange_;
  const FlatParameters& flat_;
  const Op op_;
  const bool stays_whole_;
  torch::Tensor whole_, shard_;
  torch::Tensor leaving_;   // the twin of a device's whole, while its sum is under way
  torch::Tensor arriving_;  // a sum on its way that is not the first, or is for a device
  bool collected_ = false, under_way_ = false;
  int sums_ = 0;  // started in this step
  Work work_;
};

}  // namespace trireme::parallel
