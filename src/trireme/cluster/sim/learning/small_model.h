// What learns in a co-simulation: one hidden layer of tanh and a softmax, gradients by hand, on samples that a network
// of the same kind has labelled. Private to the folder.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/ps/layout.h"

namespace trireme::cluster {

class SmallModel {
 public:
  static constexpr std::size_t kInputs = 32, kHidden = 48, kClasses = 8;
  static constexpr std::size_t kCount = kInputs * kHidden + kHidden + kHidden * kClasses + kClasses;

  explicit SmallModel(std::uint64_t seed);

  static std::vector<ps::Tensor> tensors();
  std::vector<float> start() const;
  // out ← the mean gradient of a batch of `batch` samples: the worker's `step`-th.
  void gradient(std::span<const float> weights, int worker, std::int64_t step, int batch, std::span<float> out) const;
  // Mean over samples that nobody learns from.
  double loss(std::span<const float> weights) const;

 private:
  struct Sample {
    const float* x;
    std::size_t label;
  };
  // Adds the gradient of one sample, times `scale`, to `out` where there is one; returns its loss.
  double visit(std::span<const float> weights, const Sample& sample, float scale, float* out) const;
  Sample sample(std::size_t number) const { return {&inputs_[number * kInputs], labels_[number]}; }

  const std::uint64_t seed_;
  std::vector<float> inputs_;
  std::vector<std::size_t> labels_;
};

}  // namespace trireme::cluster
