// The steps by which a stack of LSTM layers is computed, with numbers, and the schedules by which cores share them.
#pragma once
#include <vector>

#include "trireme/ops/draw/drawing.h"
#include "trireme/ops/recurrent/recurrent.h"

namespace trireme::ops {

struct LstmDrawing {
  OpDrawing drawing;
  RecurrentShape shape;
  std::vector<float> input, output;  // [step][batch][…]; the output is what the steps came to
  struct Layer {
    std::vector<float> w_ih, w_hh, b_ih, b_hh;
  };
  std::vector<Layer> layers;
  double multiplications = 0;  // counted product by product
};

inline constexpr int64_t kMostDrawnLstm = 64;  // of steps, of the batch, of features; layers up to 16

// Numbers of its own, scheduled for so many threads. Throws ConfigError where the sizes cannot be drawn.
LstmDrawing draw_lstm(const RecurrentShape& shape, int64_t threads);

// Waves from left to right, the layers' parts of the batch from top to bottom: the steps that each computes.
DrawnGrid grid_of_schedule(const RecurrentSchedule& schedule);

}  // namespace trireme::ops
