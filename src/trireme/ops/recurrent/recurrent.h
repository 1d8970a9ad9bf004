// Stacks of LSTM and GRU layers in f32, forward and backward, [step][batch][features]; weights and the order of gates
// as LibTorch keeps them. Run on the team of the calling thread; the same bits on any number of threads and by any
// schedule.
//
//   LSTM  i, f, o = σ(W_ih·x + b_ih + W_hh·h + b_hh), g = tanh(of the same), c' = f·c + i·g, h' = o·tanh(c')
//   GRU   r, z = σ(W_ih·x + b_ih + W_hh·h + b_hh), n = tanh(W_ih·x + b_ih + r·(W_hh·h + b_hh)), h' = (1 − z)·n + z·h
//
// Of each layer: W_ih·x of all steps is one product; W_hh is packed once; a step is one product with few rows and one
// pass over its gates. Backward likewise, and each weight's gradient is one product over all steps.
#pragma once
#include <cstdint>
#include <span>

#include "trireme/ops/recurrent/schedule.h"

namespace trireme::ops {

enum class RecurrentKind { lstm, gru };

struct RecurrentShape {
  RecurrentKind kind = RecurrentKind::lstm;
  int64_t layers = 1;
  int64_t input = 0;   // features of the first layer's input; the others' is `hidden`
  int64_t hidden = 0;  // features of each layer's output
  int64_t steps = 0;
  int64_t batch = 0;

  int64_t gates() const { return kind == RecurrentKind::lstm ? 4 : 3; }  // i f g o; r z n
  int64_t features(int64_t layer) const { return layer == 0 ? input : hidden; }
  int64_t input_size() const { return steps * batch * input; }
  int64_t output_size() const { return steps * batch * hidden; }
  int64_t state_size() const { return layers * batch * hidden; }  // h and c: [layer][batch][hidden]
  // Floats that forward keeps for backward: of each layer the gates, c (LSTM) or W_hh·h + b_hh of n (GRU), and the
  // output, but the last layer's.
  int64_t saved_size() const { return output_size() * (layers * (gates() + 1) + layers - 1); }
  // Floats that backward works in: the gradients of the gates, and of what layers hand up.
  int64_t workspace_size() const { return output_size() * (layers * (gates() + 1) + layers - 1) + 2 * state_size(); }
  // Of the matrix products, two operations a product; backward counts double.
  double forward_flops() const;
};

// Throws ConfigError naming what cannot be: fewer than one layer, feature or step. The batch may be empty.
void check(const RecurrentShape& shape);

// One layer's. Biases may be null, both or none.
struct RecurrentWeights {
  const float* w_ih = nullptr;  // [gates · hidden][features]
  const float* w_hh = nullptr;  // [gates · hidden][hidden]
  const float* b_ih = nullptr;  // [gates · hidden]
  const float* b_hh = nullptr;
};
struct RecurrentGradients {  // overwritten; null where not wanted
  float* w_ih = nullptr;
  float* w_hh = nullptr;
  float* b_ih = nullptr;
  float* b_hh = nullptr;
};

struct RecurrentForward {
  const float* input = nullptr;
  const float* h0 = nullptr;  // null: zeros
  const float* c0 = nullptr;  // LSTM; null: zeros
  float* output = nullptr;
  float* h = nullptr;      // after the last step; or null
  float* c = nullptr;      // LSTM; or null
  float* saved = nullptr;  // saved_size() floats
};
void recurrent_forward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                       const RecurrentForward& tensors, const RecurrentSchedule& schedule);
void recurrent_forward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                       const RecurrentForward& tensors);

struct RecurrentBackward {
  const float* input = nullptr;  // as forward had them
  const float* h0 = nullptr;
  const float* c0 = nullptr;
  const float* output = nullptr;  // as forward left it
  const float* saved = nullptr;
  const float* d_output = nullptr;  // gradients of what forward wrote; null: zeros
  const float* d_h = nullptr;
  const float* d_c = nullptr;
  float* d_input = nullptr;  // overwritten; null where not wanted
  float* d_h0 = nullptr;
  float* d_c0 = nullptr;
  float* workspace = nullptr;  // workspace_size() floats
};
void recurrent_backward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                        std::span<const RecurrentGradients> gradients, const RecurrentBackward& tensors,
                        const RecurrentSchedule& schedule);
void recurrent_backward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                        std::span<const RecurrentGradients> gradients, const RecurrentBackward& tensors);

}  // namespace trireme::ops
