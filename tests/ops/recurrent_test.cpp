#include "trireme/ops/recurrent/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/ops/with_threads.h"
#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::ops::recurrent_test {
namespace {

using Numbers = std::vector<double>;
std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

// Everything that a stack reads, in f64, one behind the other by name.
struct Stack {
  RecurrentShape shape;
  Numbers input, h0, c0;
  std::vector<Numbers> w_ih, w_hh, b_ih, b_hh;
  Numbers to_output, to_h, to_c;  // what the loss multiplies the results with

  explicit Stack(const RecurrentShape& given, unsigned seed) : shape(given) {
    std::mt19937 random(seed);
    // Exact in f32, so that both compute with the same numbers.
    const auto noise = [&](int64_t count, float most) {
      std::uniform_real_distribution<float> uniform(-most, most);
      Numbers numbers(at(count));
      for (double& x : numbers) x = static_cast<double>(uniform(random));
      return numbers;
    };
    input = noise(shape.input_size(), 1);
    h0 = noise(shape.state_size(), 1);
    c0 = noise(shape.state_size(), 1);
    const int64_t all = shape.gates() * shape.hidden;
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      w_ih.push_back(noise(all * shape.features(layer), 0.5f));
      w_hh.push_back(noise(all * shape.hidden, 0.5f));
      b_ih.push_back(noise(all, 0.5f));
      b_hh.push_back(noise(all, 0.5f));
    }
    to_output = noise(shape.output_size(), 1);
    to_h = noise(shape.state_size(), 1);
    to_c = noise(shape.state_size(), 1);
  }
};

struct Results {
  Numbers output, h, c;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// By definition, one number at a time.
Results by_definition(const Stack& s) {
  const int64_t hidden = s.shape.hidden, batch = s.shape.batch;
  Numbers input = s.input;
  Results out;
  for (int64_t layer = 0; layer < s.shape.layers; ++layer) {
    const int64_t features = s.shape.features(layer);
    Numbers h(s.h0.begin() + layer * batch * hidden, s.h0.begin() + (layer + 1) * batch * hidden);
    Numbers c(s.c0.begin() + layer * batch * hidden, s.c0.begin() + (layer + 1) * batch * hidden);
    Numbers output;
    for (int64_t step = 0; step < s.shape.steps; ++step) {
      Numbers next_h = h, next_c = c;
      for (int64_t row = 0; row < batch; ++row) {
        for (int64_t j = 0; j < hidden; ++j) {
          const auto from_input = [&](int64_t gate) {
            double sum = s.b_ih[at(layer)][at(gate * hidden + j)];
            for (int64_t i = 0; i < features; ++i)
              sum += s.w_ih[at(layer)][at((gate * hidden + j) * features + i)] *
                     input[at((step * batch + row) * features + i)];
            return sum;
          };
          const auto from_state = [&](int64_t gate) {
            double sum = s.b_hh[at(layer)][at(gate * hidden + j)];
            for (int64_t i = 0; i < hidden; ++i)
              sum += s.w_hh[at(layer)][at((gate * hidden + j) * hidden + i)] * h[at(row * hidden + i)];
            return sum;
          };
          const auto place = at(row * hidden + j);
          if (s.shape.kind == RecurrentKind::lstm) {
            next_c[place] = sigmoid(from_input(1) + from_state(1)) * c[place] +
                            sigmoid(from_input(0) + from_state(0)) * std::tanh(from_input(2) + from_state(2));
            next_h[place] = sigmoid(from_input(3) + from_state(3)) * std::tanh(next_c[place]);
          } else {
            const double z = sigmoid(from_input(1) + from_state(1));
            const double n = std::tanh(from_input(2) + sigmoid(from_input(0) + from_state(0)) * from_state(2));
            next_h[place] = (1 - z) * n + z * h[place];
          }
        }
      }
      h = next_h, c = next_c;
      output.insert(output.end(), h.begin(), h.end());
    }
    out.h.insert(out.h.end(), h.begin(), h.end());
    out.c.insert(out.c.end(), c.begin(), c.end());
    input = out.output = output;
  }
  return out;
}

double loss(const Stack& s) {
  const Results out = by_definition(s);
  double sum = 0;
  for (std::size_t i = 0; i < out.output.size(); ++i) sum += out.output[i] * s.to_output[i];
  for (std::size_t i = 0; i < out.h.size(); ++i) {
    sum += out.h[i] * s.to_h[i];
    if (s.shape.kind == RecurrentKind::lstm) sum += out.c[i] * s.to_c[i];
  }
  return sum;
}

using Floats = std::vector<float>;
Floats floats(const Numbers& numbers) { return Floats(numbers.begin(), numbers.end()); }

// What the operator makes of it.
struct Computed {
  Floats output, h, c, d_input, d_h0, d_c0;
  std::vector<Floats> w_ih, w_hh, b_ih, b_hh;  // gradients

  Computed(const Stack& s, const RecurrentSchedule& schedule) {
    const RecurrentShape& shape = s.shape;
    std::vector<std::vector<Floats>> given;
    std::vector<RecurrentWeights> weights;
    std::vector<RecurrentGradients> gradients;
    for (std::size_t layer = 0; layer < s.w_ih.size(); ++layer) {
      given.push_back({floats(s.w_ih[layer]), floats(s.w_hh[layer]), floats(s.b_ih[layer]), floats(s.b_hh[layer])});
      w_ih.emplace_back(s.w_ih[layer].size(), NAN), w_hh.emplace_back(s.w_hh[layer].size(), NAN);
      b_ih.emplace_back(s.b_ih[layer].size(), NAN), b_hh.emplace_back(s.b_hh[layer].size(), NAN);
    }
    for (std::size_t layer = 0; layer < given.size(); ++layer) {
      const auto& own = given[layer];
      weights.push_back({own[0].data(), own[1].data(), own[2].data(), own[3].data()});
      gradients.push_back({w_ih[layer].data(), w_hh[layer].data(), b_ih[layer].data(), b_hh[layer].data()});
    }
    const bool lstm = shape.kind == RecurrentKind::lstm;
    const Floats input = floats(s.input), h0 = floats(s.h0), c0 = floats(s.c0);
    output.resize(at(shape.output_size())), h.resize(h0.size()), c.resize(c0.size());
    Floats saved(at(shape.saved_size()), NAN), workspace(at(shape.workspace_size()), NAN);
    recurrent_forward(shape, weights,
                      {.input = input.data(),
                       .h0 = h0.data(),
                       .c0 = lstm ? c0.data() : nullptr,
                       .output = output.data(),
                       .h = h.data(),
                       .c = lstm ? c.data() : nullptr,
                       .saved = saved.data()},
                      schedule);
    d_input.resize(input.size()), d_h0.resize(h0.size()), d_c0.resize(c0.size());
    const Floats d_output = floats(s.to_output), d_h = floats(s.to_h), d_c = floats(s.to_c);
    recurrent_backward(shape, weights, gradients,
                       {.input = input.data(),
                        .h0 = h0.data(),
                        .c0 = lstm ? c0.data() : nullptr,
                        .output = output.data(),
                        .saved = saved.data(),
                        .d_output = d_output.data(),
                        .d_h = d_h.data(),
                        .d_c = lstm ? d_c.data() : nullptr,
                        .d_input = d_input.data(),
                        .d_h0 = d_h0.data(),
                        .d_c0 = lstm ? d_c0.data() : nullptr,
                        .workspace = workspace.data()},
                       schedule);
  }
};

void expect_near(const Floats& got, const Numbers& want, double bound, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], bound) << what << " " << i;
}

class Recurrent : public testing::TestWithParam<std::tuple<RecurrentKind, RecurrentShape>> {
 protected:
  RecurrentShape shape() const {
    RecurrentShape shape = std::get<1>(GetParam());
    shape.kind = std::get<0>(GetParam());
    return shape;
  }
};

TEST_P(Recurrent, EqualsTheDefinitionAndItsDifferences) {
  Stack s(shape(), 1);
  const RecurrentShape& it = s.shape;
  const Results want = by_definition(s);
  const bool lstm = it.kind == RecurrentKind::lstm;
  for (const auto& schedule : {make_recurrent_schedule(it.layers, it.steps, it.batch, 1, it.steps),
                               make_recurrent_schedule(it.layers, it.steps, it.batch, 3, 2)}) {
    const Computed got(s, schedule);
    expect_near(got.output, want.output, 2e-6, "output");
    expect_near(got.h, want.h, 2e-6, "h");
    if (lstm) expect_near(got.c, want.c, 4e-6, "c");
    // Some of the numbers, by central differences of the definition in f64.
    const auto gradients = [&](Numbers& x, const Floats& found, const std::string& what) {
      const std::size_t stride = std::max<std::size_t>(1, x.size() / 7);
      for (std::size_t i = 0; i < x.size(); i += stride) {
        const double before = x[i], by = 1e-5;
        x[i] = before + by;
        const double more = loss(s);
        x[i] = before - by;
        const double less = loss(s);
        x[i] = before;
        ASSERT_NEAR(found[i], (more - less) / (2 * by), 5e-5) << schedule.name << ": " << what << " " << i;
      }
    };
    gradients(s.input, got.d_input, "input");
    gradients(s.h0, got.d_h0, "h0");
    if (lstm) gradients(s.c0, got.d_c0, "c0");
    for (std::size_t layer = 0; layer < s.w_ih.size(); ++layer) {
      gradients(s.w_ih[layer], got.w_ih[layer], "w_ih");
      gradients(s.w_hh[layer], got.w_hh[layer], "w_hh");
      gradients(s.b_ih[layer], got.b_ih[layer], "b_ih");
      gradients(s.b_hh[layer], got.b_hh[layer], "b_hh");
    }
  }
}

TEST_P(Recurrent, SameBitsByAnyScheduleOnAnyThreads) {
  const Stack s(shape(), 2);
  const RecurrentShape& it = s.shape;
  const Computed one(s, make_recurrent_schedule(it.layers, it.steps, it.batch, 1, it.steps));
  for (const int64_t parts : {1, 2, 5}) {
    for (const int64_t chunk : {int64_t{1}, int64_t{3}, it.steps}) {
      run_with_threads(3, [&] {
        const Computed other(s, make_recurrent_schedule(it.layers, it.steps, it.batch, parts, chunk));
        EXPECT_EQ(one.output, other.output);
        EXPECT_EQ(one.d_input, other.d_input);
        EXPECT_EQ(one.d_h0, other.d_h0);
        EXPECT_EQ(one.w_ih, other.w_ih);
        EXPECT_EQ(one.w_hh, other.w_hh);
        EXPECT_EQ(one.b_hh, other.b_hh);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Recurrent,
    testing::Combine(testing::Values(RecurrentKind::lstm, RecurrentKind::gru),
                     testing::Values(RecurrentShape{.layers = 1, .input = 1, .hidden = 1, .steps = 1, .batch = 1},
                                     RecurrentShape{.layers = 1, .input = 5, .hidden = 7, .steps = 1, .batch = 3},
                                     RecurrentShape{.layers = 2, .input = 3, .hidden = 17, .steps = 6, .batch = 1},
                                     RecurrentShape{.layers = 3, .input = 9, .hidden = 5, .steps = 7, .batch = 6})),
    [](const auto& test) {
      const RecurrentShape& shape = std::get<1>(test.param);
      return std::string(std::get<0>(test.param) == RecurrentKind::lstm ? "lstm" : "gru") + "_hidden" +
             std::to_string(shape.hidden) + "_steps" + std::to_string(shape.steps);
    });

// Each row of each step of each layer once, after what it depends on.
TEST(RecurrentSchedule, IsInOrder) {
  for (const int64_t layers : {1, 2, 5}) {
    for (const int64_t steps : {1, 7, 64}) {
      for (const int64_t batch : {1, 3, 16}) {
        for (const int64_t parts : {1, 2, 4}) {
          for (const int64_t chunk : {1, 5, 64}) {
            const auto schedule = make_recurrent_schedule(layers, steps, batch, parts, chunk);
            std::set<std::tuple<int64_t, int64_t, int64_t>> done;
            for (const auto& wave : schedule.waves) {
              std::set<std::tuple<int64_t, int64_t, int64_t>> now;
              for (const RecurrentTask& task : wave) {
                for (int64_t step = task.first; step < task.last; ++step) {
                  for (int64_t row = task.row; row < task.row_end; ++row) {
                    if (task.layer > 0) {
                      ASSERT_TRUE(done.count({task.layer - 1, step, row}));
                    }
                    if (step > 0) {
                      ASSERT_TRUE(done.count({task.layer, step - 1, row}) || step > task.first);
                    }
                    ASSERT_TRUE(now.insert({task.layer, step, row}).second);
                    ASSERT_FALSE(done.count({task.layer, step, row}));
                  }
                }
              }
              done.insert(now.begin(), now.end());
            }
            EXPECT_EQ(static_cast<int64_t>(done.size()), layers * steps * batch);
          }
        }
      }
    }
  }
}

// Without states, biases and what nobody wants.
TEST(RecurrentOptional, NullIsZeroOrNotWanted) {
  for (const RecurrentKind kind : {RecurrentKind::lstm, RecurrentKind::gru}) {
    const RecurrentShape shape{.kind = kind, .layers = 2, .input = 4, .hidden = 6, .steps = 5, .batch = 3};
    Stack s(shape, 3);
    std::fill(s.h0.begin(), s.h0.end(), 0), std::fill(s.c0.begin(), s.c0.end(), 0);
    for (auto* biases : {&s.b_ih, &s.b_hh}) {
      for (Numbers& bias : *biases) std::fill(bias.begin(), bias.end(), 0);
    }
    std::fill(s.to_h.begin(), s.to_h.end(), 0), std::fill(s.to_c.begin(), s.to_c.end(), 0);
    const Computed whole(s, make_recurrent_schedule(2, 5, 3, 1, 5));
    std::vector<Floats> own;
    std::vector<RecurrentWeights> weights;
    for (std::size_t layer = 0; layer < 2; ++layer)
      own.push_back(floats(s.w_ih[layer])), own.push_back(floats(s.w_hh[layer]));
    for (std::size_t layer = 0; layer < 2; ++layer)
      weights.push_back({own[2 * layer].data(), own[2 * layer + 1].data()});
    const Floats input = floats(s.input), d_output = floats(s.to_output);
    Floats output(at(shape.output_size())), saved(at(shape.saved_size())), workspace(at(shape.workspace_size()));
    recurrent_forward(shape, weights, {.input = input.data(), .output = output.data(), .saved = saved.data()});
    EXPECT_EQ(output, whole.output);
    Floats w_hh(own[3].size());
    const std::vector<RecurrentGradients> gradients{{}, {.w_hh = w_hh.data()}};
    recurrent_backward(shape, weights, gradients,
                       {.input = input.data(),
                        .output = output.data(),
                        .saved = saved.data(),
                        .d_output = d_output.data(),
                        .workspace = workspace.data()});
    EXPECT_EQ(w_hh, whole.w_hh[1]);
  }
}

TEST(RecurrentOptional, EmptyBatchAndBadShapes) {
  const RecurrentShape empty{.layers = 1, .input = 2, .hidden = 2, .steps = 3, .batch = 0};
  const std::vector<RecurrentWeights> weights(1);
  Floats w(16, 5);
  recurrent_forward(empty, weights, {});
  recurrent_backward(empty, weights, std::vector<RecurrentGradients>{{.w_ih = w.data()}}, {});
  EXPECT_EQ(w, Floats(16, 0));
  RecurrentShape bad = empty;
  bad.hidden = 0;
  EXPECT_THROW(recurrent_forward(bad, weights, {}), ConfigError);
}

}  // namespace
}  // namespace trireme::ops::recurrent_test
