// A stack of LSTM or GRU layers as operators of autograd.
#pragma once
#include <torch/torch.h>

#include <tuple>
#include <vector>

#include "trireme/operators/registry.h"
#include "trireme/ops/recurrent/recurrent.h"

namespace trireme::operators {

struct RecurrentCall {
  ops::RecurrentKind kind = ops::RecurrentKind::lstm;
  torch::Tensor input;                 // [step][batch][features], or [batch][step][features]
  torch::Tensor h0, c0;                // [layer][direction][batch][hidden], the first two as one; c0 of LSTMs alone
  std::vector<torch::Tensor> weights;  // of each layer and direction w_ih, w_hh, and with biases b_ih, b_hh
  bool biases = true, batch_first = false;
  std::int64_t layers = 1;
  double dropout = 0;  // of what a layer hands up, with LibTorch's random numbers
  bool bidirectional = false;

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
};

bool takes(const RecurrentCall& call);
// Output, h and c (LSTM). One node for the whole stack, or, with dropout or two directions, one for each layer and
// direction.
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> recurrent(const RecurrentCall& call,
                                                                  const std::shared_ptr<Layer>& layer);

}  // namespace trireme::operators
