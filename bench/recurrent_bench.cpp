// How long a stack of recurrent layers takes, forward and backward with all gradients, by each schedule.
//   recurrent_bench [threads] [rounds] [batch] [hidden] [layers] [steps]
// Schedules run in turn; the medians of the rounds, in ms and GFLOP/s of the matrix products.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "trireme/ops/peak.h"
#include "trireme/ops/recurrent/recurrent.h"

using trireme::ops::RecurrentKind;
using trireme::ops::RecurrentSchedule;
using trireme::ops::RecurrentShape;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atol(argv[i]) : otherwise; };
  const int64_t team = number(1, 1), rounds = number(2, 9);
  omp_set_num_threads(static_cast<int>(team));
  fmt::print("{} thread(s), peak of one {:.0f} GFLOP/s\n", team, trireme::ops::measure_peak() / 1e9);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
  const auto noise = [&](int64_t count) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (float& x : numbers) x = uniform(random);
    return numbers;
  };
  for (const RecurrentKind kind : {RecurrentKind::lstm, RecurrentKind::gru}) {
    const int64_t hidden = number(4, 256);
    const RecurrentShape shape{.kind = kind,
                               .layers = number(5, 2),
                               .input = hidden,
                               .hidden = hidden,
                               .steps = number(6, 64),
                               .batch = number(3, 16)};
    const int64_t all = shape.gates() * hidden, layers = shape.layers;
    const auto weights_of = noise(all * hidden), biases = noise(all);
    const auto input = noise(shape.input_size()), d_output = noise(shape.output_size());
    std::vector<float> output(d_output.size()), d_input(input.size());
    std::vector<float> saved(static_cast<std::size_t>(shape.saved_size()));
    std::vector<float> workspace(static_cast<std::size_t>(shape.workspace_size()));
    std::vector<float> d_weights(static_cast<std::size_t>(all * hidden)), d_biases(static_cast<std::size_t>(all));
    const std::vector<trireme::ops::RecurrentWeights> weights(
        static_cast<std::size_t>(layers), {weights_of.data(), weights_of.data(), biases.data(), biases.data()});
    const std::vector<trireme::ops::RecurrentGradients> gradients(
        static_cast<std::size_t>(layers), {d_weights.data(), d_weights.data(), d_biases.data(), d_biases.data()});

    std::vector<RecurrentSchedule> schedules;
    for (const int64_t parts : {int64_t{1}, team}) {
      for (const int64_t chunk : {shape.steps, shape.steps / 8, shape.steps / 16}) {
        schedules.push_back(trireme::ops::make_recurrent_schedule(layers, shape.steps, shape.batch, parts,
                                                                  std::max<int64_t>(1, chunk)));
      }
    }
    std::vector<std::vector<double>> forward(schedules.size()), backward(schedules.size());
    for (int64_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < schedules.size(); ++i) {
        const double begin = now();
        recurrent_forward(shape, weights, {.input = input.data(), .output = output.data(), .saved = saved.data()},
                          schedules[i]);
        const double middle = now();
        recurrent_backward(shape, weights, gradients,
                           {.input = input.data(),
                            .output = output.data(),
                            .saved = saved.data(),
                            .d_output = d_output.data(),
                            .d_input = d_input.data(),
                            .workspace = workspace.data()},
                           schedules[i]);
        forward[i].push_back(middle - begin);
        backward[i].push_back(now() - middle);
      }
    }
    const auto median = [](std::vector<double>& x) {
      std::sort(x.begin(), x.end());
      return x[x.size() / 2];
    };
    fmt::print("{}, {} layers of {}, batch {}, {} steps\n{:40} {:>8} {:>8} {:>8} {:>8}\n",
               kind == RecurrentKind::lstm ? "LSTM" : "GRU", layers, hidden, shape.batch, shape.steps, "", "fwd ms",
               "bwd ms", "fwd GF", "bwd GF");
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      const double f = median(forward[i]), b = median(backward[i]);
      fmt::print("{:40} {:8.2f} {:8.2f} {:8.0f} {:8.0f}\n", schedules[i].name, f * 1e3, b * 1e3,
                 shape.forward_flops() / f / 1e9, 2 * shape.forward_flops() / b / 1e9);
    }
  }
}
