#include "trireme/ops/recurrent/draw/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/recurrent/cells.h"

namespace trireme::ops {
namespace {

constexpr int64_t kDrawnSteps = 3;  // of the first layer, one by one

std::vector<float> lstm_numbers(int64_t size, int64_t by, float scale) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < size; ++i) numbers.push_back((static_cast<float>((by * i + 3) % 11) - 5) * scale);
  return numbers;
}

LstmDrawing lstm_example(const RecurrentShape& shape) {
  LstmDrawing it;
  it.shape = shape;
  const int64_t all = 4 * shape.hidden;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    it.layers.push_back({lstm_numbers(all * shape.features(layer), 7 + layer, 0.1f),
                         lstm_numbers(all * shape.hidden, 5 + layer, 0.1f), lstm_numbers(all, 3, 0.05f),
                         lstm_numbers(all, 4, 0.05f)});
  }
  it.input = lstm_numbers(shape.input_size(), 4, 0.2f);
  return it;
}

// A layer as forward.cpp computes it: one product for the inputs of all steps, then a product and a pass a step.
class LayerSteps {
 public:
  LayerSteps(LstmDrawing& it, int64_t layer, const std::vector<float>& input)
      : it_(it),
        shape_(it.shape),
        weights_(it.layers[static_cast<std::size_t>(layer)]),
        features_(shape_.features(layer)),
        recurrent_(shape_.hidden, 4 * shape_.hidden, {weights_.w_hh.data(), shape_.hidden, true}) {
    const int64_t rows = shape_.steps * shape_.batch, all = 4 * shape_.hidden;
    std::vector<float> bias = weights_.b_ih;
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += weights_.b_hh[i];
    gates_.resize(static_cast<std::size_t>(rows * all));
    c_.resize(static_cast<std::size_t>(rows * shape_.hidden));
    h_ = c_;
    matmul(rows, {input.data(), features_}, PackedMatrix(features_, all, {weights_.w_ih.data(), features_, true}),
           gates_.data(), all, false, {.bias = bias.data()});
    it_.multiplications += static_cast<double>(rows * all * features_);
  }

  const float* gates(int64_t step) const { return gates_.data() + step * shape_.batch * 4 * shape_.hidden; }
  const float* c(int64_t step) const { return c_.data() + step * size(); }
  const float* h(int64_t step) const { return h_.data() + step * size(); }
  const std::vector<float>& output() const { return h_; }

  // Adds W_hh·h to the sums.
  void recurrent_product(int64_t step) {
    const std::vector<float> zeros(static_cast<std::size_t>(size()));
    matmul(shape_.batch, {step > 0 ? h(step - 1) : zeros.data(), shape_.hidden}, recurrent_, gates_at(step),
           4 * shape_.hidden, true);
    it_.multiplications += static_cast<double>(shape_.batch * 4 * shape_.hidden * shape_.hidden);
  }
  void cells(int64_t step) {
    const std::vector<float> zeros(static_cast<std::size_t>(shape_.hidden));
    for (int64_t row = 0; row < shape_.batch; ++row) {
      const int64_t at = step * size() + row * shape_.hidden;
      internal::lstm_forward(
          shape_.hidden, {gates_at(step) + row * 4 * shape_.hidden, step > 0 ? c_.data() + at - size() : zeros.data(),
                          c_.data() + at, h_.data() + at});
    }
  }

 private:
  int64_t size() const { return shape_.batch * shape_.hidden; }
  float* gates_at(int64_t step) { return gates_.data() + step * shape_.batch * 4 * shape_.hidden; }

  LstmDrawing& it_;
  const RecurrentShape& shape_;
  const LstmDrawing::Layer& weights_;
  const int64_t features_;
  const PackedMatrix recurrent_;
  std::vector<float> gates_, c_, h_;
};

// By way of the operator itself.
double difference(const LstmDrawing& it) {
  std::vector<RecurrentWeights> weights;
  for (const auto& layer : it.layers)
    weights.push_back({layer.w_ih.data(), layer.w_hh.data(), layer.b_ih.data(), layer.b_hh.data()});
  std::vector<float> output(it.output.size()), saved(static_cast<std::size_t>(it.shape.saved_size()));
  recurrent_forward(it.shape, weights, {.input = it.input.data(), .output = output.data(), .saved = saved.data()});
  double off = 0;
  for (std::size_t i = 0; i < output.size(); ++i)
    off = std::max(off, std::abs(static_cast<double>(output[i]) - static_cast<double>(it.output[i])));
  return off;
}

void add_first_layer(LstmDrawing& it, LayerSteps& layer) {
  const RecurrentShape& shape = it.shape;
  const int64_t hidden = shape.hidden, all = 4 * hidden, rows = shape.steps * shape.batch;
  auto& steps = it.drawing.steps;
  const auto grid = [&](std::string label, int64_t of, int64_t columns, const float* x, int64_t stride) {
    return grid_of_numbers(std::move(label), of, columns, x, stride);
  };
  steps.push_back(
      {"The inputs of one row of the batch, a step a line, and the first layer's weights; gates i f g o lie "
       "one behind the other.",
       {grid("x", shape.steps, shape.input, it.input.data(), shape.batch * shape.input),
        grid("W_ih", all, shape.input, it.layers[0].w_ih.data(), shape.input),
        grid("W_hh", all, hidden, it.layers[0].w_hh.data(), hidden)}});
  steps.push_back({fmt::format("The input products of all steps at once: one product of {} × {} by {} × {}, the biases "
                               "added; {} multiplications.",
                               rows, shape.input, shape.input, all, rows * all * shape.input),
                   {grid("W_ih·x + b", shape.steps, all, layer.gates(0), shape.batch * all)}});
  for (int64_t step = 0; step < shape.steps; ++step) {
    layer.recurrent_product(step);
    const bool drawn = step < kDrawnSteps;
    DrawnGrid sums = grid("sums", 1, all, layer.gates(step), all);
    layer.cells(step);
    if (!drawn) continue;
    steps.push_back({fmt::format("Step {}: {} · W_hhᵀ is added, {} multiplications for the batch; then one pass makes "
                                 "i, f, o = σ and g = tanh of the sums, c' = f·c + i·g and h' = o·tanh(c').",
                                 step, step > 0 ? "h" : "h = 0", shape.batch * all * hidden),
                     {std::move(sums), grid("i f g o", 4, hidden, layer.gates(step), hidden),
                      grid("c'", 1, hidden, layer.c(step), hidden), grid("h'", 1, hidden, layer.h(step), hidden)}});
  }
  if (shape.steps > kDrawnSteps) {
    steps.push_back({fmt::format("Steps {}…{} likewise.", kDrawnSteps, shape.steps - 1),
                     {grid("h of all steps", shape.steps, hidden, layer.h(0), shape.batch * hidden)}});
  }
}

void add_schedules(LstmDrawing& it, int64_t threads) {
  const auto& [kind, layers, input, hidden, steps, batch] = it.shape;
  const RecurrentSchedule chosen = choose_recurrent_schedule(layers, steps, batch, threads);
  it.drawing.steps.push_back(
      {fmt::format(
           "The schedule that {} thread{} take{}: {}. Tasks of one wave run beside each other; a cell says which "
           "steps its task computes.",
           threads, threads == 1 ? "" : "s", threads == 1 ? "s" : "", chosen.name),
       {grid_of_schedule(chosen)}});
  if (layers == 1 || steps == 1) return;
  if (chosen.wavefront) {
    it.drawing.steps.push_back({"The other way, by batch alone: layer after layer, each thread with rows of its own.",
                                {grid_of_schedule(make_recurrent_schedule(layers, steps, batch, threads, steps))}});
    return;
  }
  const int64_t chunk = (steps + 3) / 4;
  it.drawing.steps.push_back(
      {"The other way, a wavefront over the layers, for more cores than the batch feeds: a layer begins while the one "
       "below it goes on.",
       {grid_of_schedule(make_recurrent_schedule(layers, steps, batch, 1, chunk))}});
}

}  // namespace

LstmDrawing draw_lstm(const RecurrentShape& shape, int64_t threads) {
  check(shape);
  if (std::max({shape.steps, shape.batch, shape.input, shape.hidden}) > kMostDrawnLstm || shape.layers > 16 ||
      shape.batch < 1) {
    throw ConfigError(fmt::format("an LSTM with up to {} steps, rows and features and 16 layers can be drawn, not more",
                                  kMostDrawnLstm));
  }
  LstmDrawing it = lstm_example(shape);
  it.drawing.title = fmt::format("LSTM, {} layer{} of {}, {} steps, batch {}", shape.layers,
                                 shape.layers == 1 ? "" : "s", shape.hidden, shape.steps, shape.batch);
  it.drawing.summary = "Numbers of the batch's first row, by the products and passes that training runs.";
  LayerSteps first(it, 0, it.input);
  add_first_layer(it, first);
  it.output = first.output();
  for (int64_t layer = 1; layer < shape.layers; ++layer) {
    LayerSteps next(it, layer, std::vector<float>(it.output));
    for (int64_t step = 0; step < shape.steps; ++step) {
      next.recurrent_product(step);
      next.cells(step);
    }
    it.output = next.output();
  }
  it.drawing.steps.push_back(
      {fmt::format("{}, by {:.0f} multiplications in all; the operator's own result differs by {:g}.",
                   shape.layers > 1 ? "Each further layer takes h of the one below it as its inputs. The last one's h"
                                    : "All h",
                   it.multiplications, difference(it)),
       {grid_of_numbers("h", shape.steps, shape.hidden, it.output.data(), shape.batch * shape.hidden)}});
  add_schedules(it, threads);
  return it;
}

}  // namespace trireme::ops
