#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/recurrent/cells.h"
#include "trireme/ops/recurrent/layer.h"

namespace trireme::ops {

double RecurrentShape::forward_flops() const {
  double sum = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    sum += 2.0 * static_cast<double>(steps * batch) * static_cast<double>(gates() * hidden) *
           static_cast<double>(features(layer) + hidden);
  }
  return sum;
}

void check(const RecurrentShape& shape) {
  const auto positive = [](int64_t size, const char* what) {
    if (size < 1) throw ConfigError(fmt::format("recurrent layers: {} is {}; it must be at least 1", what, size));
  };
  positive(shape.layers, "the number of layers");
  positive(shape.input, "the number of input features");
  positive(shape.hidden, "the number of hidden features");
  positive(shape.steps, "the number of steps");
  if (shape.batch < 0)
    throw ConfigError(fmt::format("recurrent layers: the batch is {}; it cannot be negative", shape.batch));
}

namespace {

// A layer's weights as its steps read them.
struct PackedLayer {
  PackedMatrix input;      // W_ih, transposed
  PackedMatrix recurrent;  // W_hh of the gates whose sums are added, transposed: all (LSTM), r and z (GRU)
  PackedMatrix candidate;  // W_hh of n (GRU), transposed
  std::vector<float> bias;
  const float* candidate_bias = nullptr;
};

PackedLayer pack_layer(const RecurrentShape& shape, int64_t layer, const RecurrentWeights& weights) {
  const int64_t hidden = shape.hidden, all = shape.gates() * hidden, features = shape.features(layer);
  const bool gru = shape.kind == RecurrentKind::gru;
  const int64_t summed = gru ? 2 * hidden : all;
  PackedLayer packed;
  packed.input = PackedMatrix(features, all, {weights.w_ih, features, true});
  packed.recurrent = PackedMatrix(hidden, summed, {weights.w_hh, hidden, true});
  if (gru) packed.candidate = PackedMatrix(hidden, hidden, {weights.w_hh + summed * hidden, hidden, true});
  if (weights.b_ih != nullptr) {
    packed.bias.assign(weights.b_ih, weights.b_ih + all);
    for (std::size_t i = 0; i < static_cast<std::size_t>(summed); ++i) packed.bias[i] += weights.b_hh[i];
    if (gru) packed.candidate_bias = weights.b_hh + summed;
  }
  return packed;
}

class ForwardRun {
 public:
  ForwardRun(const RecurrentShape& shape, std::span<const RecurrentWeights> weights, const RecurrentForward& tensors)
      : shape_(shape), tensors_(tensors), saved_{shape, tensors.saved}, layers_(weights.size()) {
    parallel(shape.layers, [&](int64_t layer) { layers_[at(layer)] = pack_layer(shape, layer, weights[at(layer)]); });
    if (tensors.h0 == nullptr || tensors.c0 == nullptr) zeros_.resize(at(shape.state_size()));
  }

  void run(const RecurrentSchedule& schedule) {
    std::vector<bool> ready(layers_.size());
    for (const auto& wave : schedule.waves) {
      for (const RecurrentTask& task : wave) {
        if (ready[at(task.layer)] || (schedule.wavefront && task.layer > 0)) continue;
        ready[at(task.layer)] = true;
        input_product(task.layer, 0, shape_.steps * shape_.batch);
      }
      parallel(static_cast<int64_t>(wave.size()), [&](int64_t i) { run_task(wave[at(i)], schedule.wavefront); });
    }
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      const int64_t size = shape_.batch * shape_.hidden, last = (shape_.steps - 1) * size;
      if (tensors_.h != nullptr) std::copy_n(output(layer) + last, size, tensors_.h + layer * size);
      if (tensors_.c != nullptr) std::copy_n(saved_.extra(layer) + last, size, tensors_.c + layer * size);
    }
  }

 private:
  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
  float* output(int64_t layer) const { return layer == shape_.layers - 1 ? tensors_.output : saved_.output(layer); }

  // `rows` of [step · batch] from `first` on.
  void input_product(int64_t layer, int64_t first, int64_t rows) {
    const PackedLayer& packed = layers_[at(layer)];
    const int64_t features = shape_.features(layer), width = shape_.gates() * shape_.hidden;
    const float* input = layer == 0 ? tensors_.input : output(layer - 1);
    matmul(rows, {input + first * features, features}, packed.input, saved_.gates(layer) + first * width, width, false,
           {.bias = packed.bias.empty() ? nullptr : packed.bias.data()});
  }

  void run_task(const RecurrentTask& task, bool wavefront) {
    const int64_t rows = task.row_end - task.row;
    if (wavefront && task.layer > 0) {
      if (rows == shape_.batch) {
        input_product(task.layer, task.first * rows, (task.last - task.first) * rows);
      } else {
        for (int64_t step = task.first; step < task.last; ++step)
          input_product(task.layer, step * shape_.batch + task.row, rows);
      }
    }
    for (int64_t step = task.first; step < task.last; ++step) run_step(task, step);
  }

  void run_step(const RecurrentTask& task, int64_t step) {
    const int64_t hidden = shape_.hidden, width = shape_.gates() * hidden, rows = task.row_end - task.row;
    const PackedLayer& packed = layers_[at(task.layer)];
    const float* h0 = tensors_.h0 != nullptr ? tensors_.h0 : zeros_.data();
    const float* c0 = tensors_.c0 != nullptr ? tensors_.c0 : zeros_.data();
    float* h = output(task.layer);
    float* extra = saved_.extra(task.layer);
    float* gates = internal::row_of(shape_, saved_.gates(task.layer), width, step, task.row);
    const float* h_before = internal::before(shape_, h, h0, task.layer, step, task.row);
    matmul(rows, {h_before, hidden}, packed.recurrent, gates, width, true);
    if (shape_.kind == RecurrentKind::gru) {
      matmul(rows, {h_before, hidden}, packed.candidate, internal::row_of(shape_, extra, hidden, step, task.row),
             hidden, false, {.bias = packed.candidate_bias});
    }
    for (int64_t row = task.row; row < task.row_end; ++row, gates += width) {
      float* h_after = internal::row_of(shape_, h, hidden, step, row);
      float* own = internal::row_of(shape_, extra, hidden, step, row);
      if (shape_.kind == RecurrentKind::lstm) {
        internal::lstm_forward(hidden,
                               {gates, internal::before(shape_, extra, c0, task.layer, step, row), own, h_after});
      } else {
        internal::gru_forward(hidden, {gates, own, internal::before(shape_, h, h0, task.layer, step, row), h_after});
      }
    }
  }

  const RecurrentShape& shape_;
  const RecurrentForward& tensors_;
  internal::SavedLayers<float> saved_;
  std::vector<PackedLayer> layers_;
  std::vector<float> zeros_;
};

}  // namespace

void recurrent_forward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                       const RecurrentForward& tensors, const RecurrentSchedule& schedule) {
  check(shape);
  if (shape.batch > 0) ForwardRun(shape, weights, tensors).run(schedule);
}

void recurrent_forward(const RecurrentShape& shape, std::span<const RecurrentWeights> weights,
                       const RecurrentForward& tensors) {
  recurrent_forward(shape, weights, tensors,
                    choose_recurrent_schedule(shape.layers, shape.steps, shape.batch, threads()));
}

}  // namespace trireme::ops
