// Dropout whose random numbers belong to the thread that computes: learners that are threads of one process neither
// share nor lock a generator, and what is dropped is a function of the last set_random() and the forward passes since.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "trireme/nn/layer.h"

namespace trireme::nn {

// Seeds the calling thread's generators, one per device. Before the first call the seed is 0.
void set_random(std::uint64_t seed);

// Where the calling thread's generators are, to go back to.
struct RandomState {
  std::uint64_t seed = 0;
  std::vector<std::pair<torch::Device, torch::Tensor>> generators = {};
};
RandomState random_state();

// The next of the calling thread's random numbers for the CPU.
std::uint64_t next_random();

// While it lives the calling thread draws on from `state`; afterwards from where it was.
class RandomScope {
 public:
  explicit RandomScope(const RandomState& state);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RandomState before_;
};

class DropoutImpl : public torch::nn::Module, public Layer {
 public:
  explicit DropoutImpl(double probability) : probability_(probability) {}
  // In training each element is dropped with the probability and the others are scaled up; otherwise as it came.
  torch::Tensor forward(const torch::Tensor& input) { return compute(input); }
  torch::Tensor plain(const torch::Tensor& input) override;
  // residual + forward(input), in one pass where layers are ours.
  torch::Tensor added(const torch::Tensor& residual, const torch::Tensor& input);
  // The same as forward for part `begin` … of a whole that is `size` along `dim`: what falls is what would fall of the
  // whole.
  torch::Tensor part(const torch::Tensor& input, std::int64_t dim, std::int64_t begin, std::int64_t size);

  double probability() const { return probability_; }
  bool rests() const { return !is_training() || probability_ == 0; }

 private:
  torch::Tensor draw(torch::Tensor mask) const;

  double probability_;
};
TORCH_MODULE(Dropout);

}  // namespace trireme::nn
