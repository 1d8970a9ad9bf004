#include <algorithm>
#include <vector>

#include "trireme/ops/column_sums.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/recurrent/cells.h"
#include "trireme/ops/recurrent/layer.h"

namespace trireme::ops {
namespace {

class BackwardRun {
 public:
  BackwardRun(const RecurrentShape& shape, std::span<const RecurrentWeights> weights, const RecurrentBackward& tensors)
      : shape_(shape), tensors_(tensors), saved_{shape, tensors.saved}, d_saved_{shape, tensors.workspace} {
    d_h_ = tensors.workspace + shape.saved_size();
    d_c_ = d_h_ + shape.state_size();
    start(d_h_, tensors.d_h);
    start(d_c_, tensors.d_c);
    if (tensors.h0 == nullptr || tensors.c0 == nullptr) zeros_.resize(at(shape.state_size()));
    packed_.resize(at(shape.layers));
    parallel(shape.layers, [&](int64_t layer) {
      const RecurrentWeights& own = weights[at(layer)];
      const int64_t hidden = shape_.hidden, features = shape_.features(layer), all = shape_.gates() * hidden;
      const int64_t summed = shape_.kind == RecurrentKind::gru ? 2 * hidden : all;
      Packed& packed = packed_[at(layer)];
      if (layer > 0 || tensors.d_input != nullptr) packed.input = PackedMatrix(all, features, {own.w_ih, features});
      packed.recurrent = PackedMatrix(summed, hidden, {own.w_hh, hidden});
      if (summed < all) packed.candidate = PackedMatrix(hidden, hidden, {own.w_hh + summed * hidden, hidden});
    });
  }

  void run(const RecurrentSchedule& schedule) {
    std::vector<int64_t> left(packed_.size());  // tasks of a layer
    for (const auto& wave : schedule.waves) {
      for (const RecurrentTask& task : wave) ++left[at(task.layer)];
    }
    for (auto wave = schedule.waves.rbegin(); wave != schedule.waves.rend(); ++wave) {
      parallel(static_cast<int64_t>(wave->size()), [&](int64_t i) { run_task((*wave)[at(i)], schedule.wavefront); });
      for (const RecurrentTask& task : *wave) {
        if (--left[at(task.layer)] > 0 || (schedule.wavefront && task.layer > 0)) continue;
        input_product(task.layer, 0, shape_.steps * shape_.batch);
      }
    }
    if (tensors_.d_h0 != nullptr) std::copy_n(d_h_, shape_.state_size(), tensors_.d_h0);
    if (tensors_.d_c0 != nullptr) std::copy_n(d_c_, shape_.state_size(), tensors_.d_c0);
  }

  void weights(int64_t layer, const RecurrentGradients& out) {
    const int64_t hidden = shape_.hidden, all = shape_.gates() * hidden, features = shape_.features(layer);
    const int64_t rows = shape_.steps * shape_.batch;
    const float* d_gates = d_saved_.gates(layer);
    if (out.w_ih != nullptr) {
      const float* input = layer == 0 ? tensors_.input : output(layer - 1);
      matmul(all, features, rows, {d_gates, all, true}, {input, features}, out.w_ih, features);
    }
    if (out.b_ih != nullptr) column_sums(rows, all, d_gates, all, out.b_ih);
    // GRU's n has a sum of its own behind W_hh.
    const bool gru = shape_.kind == RecurrentKind::gru;
    const int64_t summed = gru ? 2 * hidden : all;
    const float* d_q = d_saved_.extra(layer);
    if (out.w_hh != nullptr) {
      recurrent_weight(layer, d_gates, all, summed, out.w_hh);
      if (gru) recurrent_weight(layer, d_q, hidden, hidden, out.w_hh + summed * hidden);
    }
    if (out.b_hh != nullptr) {
      column_sums(rows, summed, d_gates, all, out.b_hh);
      if (gru) column_sums(rows, hidden, d_q, hidden, out.b_hh + summed);
    }
  }

 private:
  struct Packed {
    PackedMatrix input, recurrent, candidate;  // W_ih and the parts of W_hh as in forward.cpp, not transposed
  };

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
  void start(float* state, const float* given) {
    if (given != nullptr) {
      std::copy_n(given, shape_.state_size(), state);
    } else {
      std::fill_n(state, shape_.state_size(), 0.0f);
    }
  }
  const float* output(int64_t layer) const {
    return layer == shape_.layers - 1 ? tensors_.output : saved_.output(layer);
  }
  const float* h0() const { return tensors_.h0 != nullptr ? tensors_.h0 : zeros_.data(); }
  const float* c0() const { return tensors_.c0 != nullptr ? tensors_.c0 : zeros_.data(); }

  // Σ over steps of dᵀ · h before the step; d has `count` columns of [step][batch][width].
  void recurrent_weight(int64_t layer, const float* d, int64_t width, int64_t count, float* out) {
    const int64_t hidden = shape_.hidden, batch = shape_.batch;
    matmul(count, hidden, (shape_.steps - 1) * batch, {d + batch * width, width, true}, {output(layer), hidden}, out,
           hidden);
    if (tensors_.h0 == nullptr) return;
    matmul(count, hidden, batch, {d, width, true}, {h0() + layer * batch * hidden, hidden}, out, hidden, true);
  }

  void input_product(int64_t layer, int64_t first, int64_t rows) {
    float* out = layer == 0 ? tensors_.d_input : d_saved_.output(layer - 1);
    if (out == nullptr) return;
    const int64_t features = shape_.features(layer), width = shape_.gates() * shape_.hidden;
    matmul(rows, {d_saved_.gates(layer) + first * width, width}, packed_[at(layer)].input, out + first * features,
           features);
  }

  void run_task(const RecurrentTask& task, bool wavefront) {
    for (int64_t step = task.last - 1; step >= task.first; --step) run_step(task, step);
    if (!wavefront || task.layer == 0) return;
    for (int64_t step = task.first; step < task.last; ++step)
      input_product(task.layer, step * shape_.batch + task.row, task.row_end - task.row);
  }

  void run_step(const RecurrentTask& task, int64_t step) {
    using internal::before, internal::row_of;
    const int64_t hidden = shape_.hidden, width = shape_.gates() * hidden, layer = task.layer;
    const bool top = layer == shape_.layers - 1;
    const float* from_above = top ? tensors_.d_output : d_saved_.output(layer);
    for (int64_t row = task.row; row < task.row_end; ++row) {
      const float* gates = row_of(shape_, saved_.gates(layer), width, step, row);
      const float* extra = row_of(shape_, saved_.extra(layer), hidden, step, row);
      const float* d_output = from_above == nullptr ? nullptr : row_of(shape_, from_above, hidden, step, row);
      float* d_gates = row_of(shape_, d_saved_.gates(layer), width, step, row);
      float* d_h = state_row(d_h_, layer, row);
      if (shape_.kind == RecurrentKind::lstm) {
        internal::lstm_backward(hidden, {gates, before(shape_, saved_.extra(layer), c0(), layer, step, row), extra,
                                         d_output, d_h, state_row(d_c_, layer, row), d_gates});
      } else {
        internal::gru_backward(hidden, {gates, extra, before(shape_, output(layer), h0(), layer, step, row), d_output,
                                        d_h, d_gates, row_of(shape_, d_saved_.extra(layer), hidden, step, row)});
      }
    }
    const int64_t rows = task.row_end - task.row;
    const Packed& packed = packed_[at(layer)];
    const float* d_gates = row_of(shape_, d_saved_.gates(layer), width, step, task.row);
    float* d_h = state_row(d_h_, layer, task.row);
    const bool gru = shape_.kind == RecurrentKind::gru;
    matmul(rows, {d_gates, width}, packed.recurrent, d_h, hidden, gru);
    if (gru) {
      matmul(rows, {row_of(shape_, d_saved_.extra(layer), hidden, step, task.row), hidden}, packed.candidate, d_h,
             hidden, true);
    }
  }
  float* state_row(float* state, int64_t layer, int64_t row) const {
    return state + (layer * shape_.batch + row) * shape_.hidden;
  }

  const RecurrentShape& shape_;
  const RecurrentBackward& tensors_;
  internal::SavedLayers<const float> saved_;
  internal::SavedLayers<float> d_saved_;  // gradients of what forward saved, in the workspace
  float* d_h_ = nullptr;                  // of the states before the step that was last gone through
  float* d_c_ = nullptr;
  std::vector<Packed> packed_;
  std::vector<float> zeros_;
};

void zero(float* out, int64_t size) {
  if (out != nullptr) std::fill_n(out, size, 0.0f);
}

}  // namespace

void recurrent_backward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                        std::span<const RecurrentGradients> gradients, const RecurrentBackward& tensors,
                        const RecurrentSchedule& schedule) {
  check(shape);
  if (shape.batch == 0) {
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      const RecurrentGradients& out = gradients[static_cast<std::size_t>(layer)];
      const int64_t all = shape.gates() * shape.hidden;
      zero(out.w_ih, all * shape.features(layer));
      zero(out.w_hh, all * shape.hidden);
      zero(out.b_ih, all);
      zero(out.b_hh, all);
    }
    return;
  }
  BackwardRun run(shape, weights, tensors);
  run.run(schedule);
  for (int64_t layer = 0; layer < shape.layers; ++layer) run.weights(layer, gradients[static_cast<std::size_t>(layer)]);
}

void recurrent_backward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                        std::span<const RecurrentGradients> gradients, const RecurrentBackward& tensors) {
  recurrent_backward(shape, weights, gradients, tensors,
                     choose_recurrent_schedule(shape.layers, shape.steps, shape.batch, threads()));
}

}  // namespace trireme::ops
