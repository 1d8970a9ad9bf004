// The seam at which a layer can be split over workers. LibTorch's layers have neither a virtual forward nor hooks; the
// layers of this folder compute what theirs do, under the same names and from the same random numbers, unless they are
// given a Split that takes the place of that computation.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>

#include "trireme/operators/epilogue.h"

namespace trireme::nn {

struct Split {
  std::function<torch::Tensor(const torch::Tensor& input)> forward;
  // Of an Embedding that gives the scores as well. `bias` may be undefined.
  std::function<torch::Tensor(const torch::Tensor& input, const torch::Tensor& bias)> scores = {};
};

class Layer {
 public:
  virtual ~Layer() = default;
  // The layer's own computation, with the parameters it has.
  virtual torch::Tensor plain(const torch::Tensor& input) = 0;
  // Null: the layer's own computation again.
  void set_split(std::shared_ptr<const Split> split) { split_ = std::move(split); }
  const std::shared_ptr<const Split>& split() const { return split_; }

 protected:
  // The copy keeps alive what runs, should it be replaced while it does.
  torch::Tensor compute(const torch::Tensor& input) {
    auto split = split_;
    if (!split) return plain(input);
    const operators::Unasked parts;
    return split->forward(input);
  }

 private:
  std::shared_ptr<const Split> split_;
};

}  // namespace trireme::nn
