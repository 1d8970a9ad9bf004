// A stack of LSTM layers as one operator of autograd.
#pragma once
#include <torch/torch.h>

#include <tuple>
#include <vector>

#include "trireme/operators/registry.h"

namespace trireme::operators {

struct RecurrentCall {
  torch::Tensor input;                 // [step][batch][features], or [batch][step][features]
  torch::Tensor h0, c0;                // [layer][batch][hidden]
  std::vector<torch::Tensor> weights;  // of each layer w_ih, w_hh, and with biases b_ih, b_hh
  bool biases = true, batch_first = false;
  std::int64_t layers = 1;
};

bool takes(const RecurrentCall& call);
// Output, h and c.
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> lstm(const RecurrentCall& call,
                                                             const std::shared_ptr<Layer>& layer);

}  // namespace trireme::operators
