// Where the tensors of a stack's layers lie, for both directions.
#pragma once
#include "trireme/ops/recurrent/recurrent.h"

namespace trireme::ops::internal {

// The parts of `saved`; T is float or const float. [step][batch][…] each.
template <class T>
struct SavedLayers {
  const RecurrentShape& shape;
  T* saved;

  T* gates(int64_t layer) const { return saved + shape.output_size() * shape.gates() * layer; }
  // c after each step (LSTM), W_hh·h + b_hh of n (GRU).
  T* extra(int64_t layer) const { return saved + shape.output_size() * (shape.gates() * shape.layers + layer); }
  // Of any but the last layer.
  T* output(int64_t layer) const { return saved + shape.output_size() * ((shape.gates() + 1) * shape.layers + layer); }
};

// Row `row` of step `step` in [step][batch][width]; before the first step in `start`, [layer][batch][width].
template <class T>
T* row_of(const RecurrentShape& shape, T* x, int64_t width, int64_t step, int64_t row) {
  return x + (step * shape.batch + row) * width;
}
inline const float* before(const RecurrentShape& shape, const float* x, const float* start, int64_t layer, int64_t step,
                           int64_t row) {
  if (step > 0) return row_of(shape, x, shape.hidden, step - 1, row);
  return start + (layer * shape.batch + row) * shape.hidden;
}

}  // namespace trireme::ops::internal
