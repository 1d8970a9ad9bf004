// What it costs to move a model's bytes in memory, on all workers at once.
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "trireme/collective/run/communicator.h"

namespace trireme::train {

// As it is in training, before something is measured: much else has gone through the caches, and all workers begin.
class Interlude {
 public:
  explicit Interlude(Communicator& world) : world_(world), much_(32 << 20) {}
  void operator()() {
    std::ranges::fill(much_, static_cast<char>(++times_));
    world_.barrier();
  }

 private:
  Communicator& world_;
  std::vector<char> much_;
  int times_ = 0;
};

// Seconds for a byte. Of what was just written, to where it is not; `bytes` are the model's. Collective.
double copy_s_per_byte(std::size_t bytes, Interlude& interlude);
// As strategies mix weights: two vectors are read, one of them written. Collective.
double pass_s_per_byte(std::size_t bytes, Interlude& interlude);
// To the host and back, 0 where the model is there.
double download_s_per_byte(const std::vector<torch::Tensor>& parameters, const torch::Device& device,
                           std::size_t bytes);

}  // namespace trireme::train
