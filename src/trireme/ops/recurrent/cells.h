// What a recurrent step does besides products: a pass over the gates of one row of the batch. All pointers are to
// `hidden` floats, gates to that many each, one behind the other.
#pragma once
#include <cstdint>

namespace trireme::ops::internal {

struct LstmForward {
  float* gates;    // sums; left as i f g o
  const float* c;  // before the step
  float* c_after;
  float* h_after;
};
void lstm_forward(int64_t hidden, const LstmForward& row);

struct LstmBackward {
  const float* gates;  // i f g o
  const float* c;      // before the step
  const float* c_after;
  const float* d_output;  // of h after the step, from above; or null
  const float* d_h;       // of the same, from the next step
  float* d_c;             // of c after the step; left as that of c before it
  float* d_gates;         // of the sums
};
void lstm_backward(int64_t hidden, const LstmBackward& row);

struct GruForward {
  float* gates;    // sums, of n only the input's; left as r z n
  const float* q;  // W_hh·h + b_hh of n
  const float* h;  // before the step
  float* h_after;
};
void gru_forward(int64_t hidden, const GruForward& row);

struct GruBackward {
  const float* gates;  // r z n
  const float* q;
  const float* h;
  const float* d_output;  // or null
  float* d_h;             // of h after the step, from the next; left as the part of h's before it that passes by W_hh
  float* d_gates;         // of the sums of r and z, and of n's input sum
  float* d_q;
};
void gru_backward(int64_t hidden, const GruBackward& row);

}  // namespace trireme::ops::internal
