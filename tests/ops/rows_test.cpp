#include "trireme/ops/rows/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/ops/with_threads.h"
#include "trireme/base/error.h"
#include "trireme/ops/column_sums.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::ops::rows_test {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<double>;
using Sizes = std::pair<int64_t, int64_t>;
std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

Floats noise(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  Floats x(at(count));
  for (float& number : x) number = uniform(random);
  return x;
}
Numbers numbers(const Floats& x) { return Numbers(x.begin(), x.end()); }

void expect_near(const Floats& got, const Numbers& want, double bound, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], bound) << what << " " << i;
}

// d of Σ weights ∘ f(x) by x, by central differences.
Numbers differences(const std::function<Numbers(const Numbers&)>& f, Numbers x, const Floats& weights) {
  const auto loss = [&] {
    const Numbers y = f(x);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<double>(weights[i]);
    return sum;
  };
  Numbers d(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i], by = 1e-5;
    x[i] = before + by;
    const double more = loss();
    x[i] = before - by;
    d[i] = (more - loss()) / (2 * by);
    x[i] = before;
  }
  return d;
}

template <class Body>
void on_every_set(Body&& body) {
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    SCOPED_TRACE(set);
    body();
  }
  set_instruction_set("auto");
}

TEST(LayerNorm, EqualsTheFormulaAndItsDifferences) {
  on_every_set([] {
    for (const auto& [rows, columns] : {Sizes{0, 4}, {1, 2}, {3, 5}, {9, 33}, {70, 16}}) {
      const Floats x = noise(rows * columns, 1), gamma = noise(columns, 2), beta = noise(columns, 3);
      const Floats d_y = noise(rows * columns, 4);
      const int64_t width = columns;
      const auto formula = [&](const Numbers& in, const Numbers& gain, const Numbers& shift) {
        Numbers y(in.size());
        for (std::size_t row = 0; row < in.size(); row += at(width)) {
          double mean = 0, variance = 0;
          for (std::size_t j = 0; j < at(width); ++j) mean += in[row + j] / static_cast<double>(width);
          for (std::size_t j = 0; j < at(width); ++j)
            variance += (in[row + j] - mean) * (in[row + j] - mean) / static_cast<double>(width);
          for (std::size_t j = 0; j < at(width); ++j)
            y[row + j] = (in[row + j] - mean) / std::sqrt(variance + 1e-3) * gain[j] + shift[j];
        }
        return y;
      };
      const Numbers in = numbers(x), gain = numbers(gamma), shift = numbers(beta);
      Floats y(x.size()), mean(at(rows)), rstd(at(rows)), d_x(x.size()), d_gamma(at(columns)), d_beta(at(columns));
      layer_norm_forward(rows, columns, 1e-3f, x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data());
      expect_near(y, formula(in, gain, shift), 4e-6, "y");
      layer_norm_backward(rows, columns, x.data(), gamma.data(), mean.data(), rstd.data(), d_y.data(), d_x.data(),
                          d_gamma.data(), d_beta.data());
      const auto of_x = [&](const Numbers& it) { return formula(it, gain, shift); };
      expect_near(d_x, differences(of_x, in, d_y), 5e-5, "d_x");
      expect_near(d_gamma, differences([&](const Numbers& it) { return formula(in, it, shift); }, gain, d_y), 5e-5,
                  "d_gamma");
      expect_near(d_beta, differences([&](const Numbers& it) { return formula(in, gain, it); }, shift, d_y), 5e-5,
                  "d_beta");
      // Without gamma and beta.
      const Numbers ones(gain.size(), 1), zeros(gain.size(), 0);
      layer_norm_forward(rows, columns, 1e-3f, x.data(), nullptr, nullptr, y.data(), mean.data(), rstd.data());
      expect_near(y, formula(in, ones, zeros), 4e-6, "plain y");
      layer_norm_backward(rows, columns, x.data(), nullptr, mean.data(), rstd.data(), d_y.data(), d_x.data(), nullptr,
                          nullptr);
      expect_near(d_x, differences([&](const Numbers& it) { return formula(it, ones, zeros); }, in, d_y), 5e-5,
                  "plain d_x");
    }
  });
}

Numbers softmax(const Numbers& x, int64_t columns) {
  Numbers y(x.size());
  for (std::size_t row = 0; row < x.size(); row += at(columns)) {
    double sum = 0;
    for (std::size_t j = 0; j < at(columns); ++j) sum += std::exp(x[row + j]);
    for (std::size_t j = 0; j < at(columns); ++j) y[row + j] = std::exp(x[row + j]) / sum;
  }
  return y;
}

TEST(Softmax, EqualsTheFormulaAndItsDifferences) {
  on_every_set([] {
    for (const auto& [rows, columns] : {Sizes{0, 4}, {1, 1}, {3, 5}, {9, 33}, {40, 16}}) {
      const int64_t width = columns;
      const Floats x = noise(rows * columns, 1), d_y = noise(rows * columns, 2);
      Floats y(x.size()), d_x(x.size());
      softmax_forward(rows, columns, x.data(), y.data());
      expect_near(y, softmax(numbers(x), columns), 5e-7, "y");
      softmax_backward(rows, columns, y.data(), d_y.data(), d_x.data());
      expect_near(d_x, differences([&](const Numbers& it) { return softmax(it, width); }, numbers(x), d_y), 2e-6,
                  "d_x");
    }
  });
  // Exponentials that no float holds.
  const Floats large{1000, 999, -1000};
  Floats y(3);
  softmax_forward(1, 3, large.data(), y.data());
  expect_near(y, {0.7310585786, 0.2689414214, 0}, 1e-6, "large");
}

TEST(CrossEntropy, EqualsTheFormulaAndItsDifferences) {
  on_every_set([] {
    for (const auto& [rows, classes] : {Sizes{0, 4}, {1, 1}, {4, 5}, {9, 33}}) {
      for (const float smoothing : {0.0f, 0.1f}) {
        const CrossEntropy shape{.rows = rows, .classes = classes, .smoothing = smoothing};
        const Floats x = noise(rows * classes, 1);
        std::vector<int64_t> targets(at(rows));
        for (int64_t row = 0; row < rows; ++row) targets[at(row)] = row == 2 ? shape.ignored : row * 7 % classes;
        const auto formula = [&](const Numbers& in) {
          Numbers losses;
          const Numbers y = softmax(in, shape.classes);
          for (int64_t row = 0; row < shape.rows; ++row) {
            if (targets[at(row)] == shape.ignored) continue;
            double loss =
                -(1 - static_cast<double>(smoothing)) * std::log(y[at(row * shape.classes + targets[at(row)])]);
            for (int64_t j = 0; j < shape.classes; ++j)
              loss -= static_cast<double>(smoothing) / static_cast<double>(shape.classes) *
                      std::log(y[at(row * shape.classes + j)]);
            losses.push_back(loss);
          }
          return losses;
        };
        Floats sums(at(rows)), d_x(x.size());
        const CrossEntropyResult got = cross_entropy_forward(shape, x.data(), targets.data(), sums.data());
        const Numbers want = formula(numbers(x));
        double sum = 0;
        for (const double loss : want) sum += loss;
        EXPECT_EQ(got.count, static_cast<int64_t>(want.size()));
        EXPECT_NEAR(got.sum, sum, 2e-6 * static_cast<double>(rows + 1));
        cross_entropy_backward(shape, x.data(), targets.data(), sums.data(), 0.5f, d_x.data());
        expect_near(d_x, differences(formula, numbers(x), Floats(want.size(), 0.5f)), 2e-6, "d_x");
      }
    }
  });
  const std::vector<int64_t> wrong{0, 3};
  const Floats x(6);
  Floats sums(2);
  EXPECT_THROW(cross_entropy_forward({.rows = 2, .classes = 3}, x.data(), wrong.data(), sums.data()), DataError);
}

TEST(Embedding, GathersRowsAndAddsThemUp) {
  const int64_t count = 11, columns = 19, rows = 300;
  const Floats table = noise(count * columns, 1), d_y = noise(rows * columns, 2);
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < rows; ++row) indices.push_back(row * row % 10);
  Floats y(d_y.size()), d_table(table.size(), NAN);
  embedding_forward(rows, columns, count, table.data(), indices.data(), y.data());
  embedding_backward(rows, columns, count, indices.data(), d_y.data(), d_table.data(), 4);
  Numbers want(table.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < columns; ++j) {
      ASSERT_EQ(y[at(row * columns + j)], table[at(indices[at(row)] * columns + j)]);
      if (indices[at(row)] != 4)
        want[at(indices[at(row)] * columns + j)] += static_cast<double>(d_y[at(row * columns + j)]);
    }
  }
  expect_near(d_table, want, 1e-4, "d_table");
  indices[7] = count;
  EXPECT_THROW(embedding_forward(rows, columns, count, table.data(), indices.data(), y.data()), DataError);
}

TEST(ColumnSums, EqualSumsInDouble) {
  on_every_set([] {
    for (const auto& [rows, columns] : {Sizes{0, 3}, {1, 1}, {5, 130}, {1000, 71}}) {
      const int64_t stride = columns + 2;
      const Floats x = noise(rows * stride, 1), before = noise(columns, 2);
      for (const bool accumulate : {false, true}) {
        Floats out = before;
        column_sums(rows, columns, x.data(), stride, out.data(), accumulate);
        for (int64_t j = 0; j < columns; ++j) {
          double sum = accumulate ? static_cast<double>(before[at(j)]) : 0;
          for (int64_t row = 0; row < rows; ++row) sum += static_cast<double>(x[at(row * stride + j)]);
          ASSERT_NEAR(out[at(j)], sum, 1e-4);
        }
      }
    }
  });
}

TEST(Rows, SameBitsOnAnyNumberOfThreads) {
  const int64_t rows = 500, columns = 90;
  const Floats x = noise(rows * columns, 1), gamma = noise(columns, 2), d_y = noise(rows * columns, 3);
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < rows; ++row) indices.push_back(row % columns);
  const auto all = [&](int count) {
    Floats y(x.size()), mean(at(rows)), rstd(at(rows)), d_x(x.size()), d_gamma(gamma.size()), d_beta(gamma.size()),
        sums(at(rows)), d_table(at(columns * columns)), result;
    run_with_threads(count, [&] {
      layer_norm_forward(rows, columns, 1e-5f, x.data(), gamma.data(), nullptr, y.data(), mean.data(), rstd.data());
      layer_norm_backward(rows, columns, x.data(), gamma.data(), mean.data(), rstd.data(), d_y.data(), d_x.data(),
                          d_gamma.data(), d_beta.data());
      const CrossEntropy shape{.rows = rows, .classes = columns};
      const auto loss = cross_entropy_forward(shape, x.data(), indices.data(), sums.data());
      result.push_back(static_cast<float>(loss.sum));
      embedding_backward(rows, columns, columns, indices.data(), d_y.data(), d_table.data());
    });
    for (const Floats* part : {&y, &d_x, &d_gamma, &d_beta, &sums, &d_table})
      result.insert(result.end(), part->begin(), part->end());
    return result;
  };
  const Floats one = all(1);
  EXPECT_EQ(one, all(2));
  EXPECT_EQ(one, all(5));
}

}  // namespace
}  // namespace trireme::ops::rows_test
