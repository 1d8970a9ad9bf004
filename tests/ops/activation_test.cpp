#include "trireme/ops/elementwise/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/ops/with_threads.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::ops::activation_test {
namespace {

using Floats = std::vector<float>;

double exact(Activation activation, double x) {
  constexpr double kPi = 3.14159265358979323846;
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu:
      return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
  }
  return 0;
}
double exact_slope(Activation activation, double x) {
  const double by = 1e-5;
  return (exact(activation, x + by) - exact(activation, x - by)) / (2 * by);
}

Floats numbers(std::size_t count, float most) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-most, most);
  Floats x(count);
  for (float& number : x) number = uniform(random);
  return x;
}

TEST(Activation, EqualsTheFormulaAndItsSlope) {
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    for (const Activation activation : kActivations) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{37}, std::size_t{40001}}) {
        const Floats x = numbers(count, 8), d_y = numbers(count, 1);
        Floats y(count), d_x(count);
        activation_forward(activation, static_cast<int64_t>(count), x.data(), y.data());
        activation_backward(activation, static_cast<int64_t>(count), x.data(), d_y.data(), d_x.data());
        for (std::size_t i = 0; i < count; ++i) {
          const double v = static_cast<double>(x[i]);
          ASSERT_NEAR(y[i], exact(activation, v), 4e-7 * (1 + std::abs(v))) << name(activation) << " " << v;
          if (std::abs(v) < 1e-4) continue;  // no slope at 0
          ASSERT_NEAR(d_x[i], d_y[i] * exact_slope(activation, v), 1e-6) << name(activation) << " " << v;
        }
      }
    }
  }
  set_instruction_set("auto");
}

TEST(Activation, FarOut) {
  const float infinite = std::numeric_limits<float>::infinity();
  const Floats x{1e30f, -1e30f, infinite, NAN}, d_y(4, 1);
  Floats y(4), d_x(4);
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
    activation_forward(activation, 4, x.data(), y.data());
    activation_backward(activation, 4, x.data(), d_y.data(), d_x.data());
    EXPECT_EQ(y[0], 1e30f) << name(activation);
    EXPECT_EQ(y[1], 0) << name(activation);
    EXPECT_EQ(y[2], infinite) << name(activation);
    EXPECT_TRUE(std::isnan(y[3])) << name(activation);
    EXPECT_EQ(d_x[0], 1) << name(activation);
    EXPECT_NEAR(d_x[1], 0, 1e-30) << name(activation);
    EXPECT_EQ(d_x[2], 1) << name(activation);
  }
}

TEST(Activation, WithBias) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{0, 5}, {3, 1}, {7, 19}, {400, 130}}) {
    const auto size = static_cast<std::size_t>(rows * columns);
    const Floats x = numbers(size, 3), bias = numbers(static_cast<std::size_t>(columns), 1), d_y = numbers(size, 1);
    Floats sum(size), y(size), d_x(size), d_bias(bias.size());
    bias_activation_forward(Activation::gelu, rows, columns, x.data(), bias.data(), sum.data(), y.data());
    bias_activation_backward(Activation::gelu, rows, columns, sum.data(), d_y.data(), d_x.data(), d_bias.data());
    Floats without = x;
    bias_activation_forward(Activation::gelu, rows, columns, x.data(), bias.data(), nullptr, without.data());
    EXPECT_EQ(without, y);
    std::vector<double> want(bias.size()), sizes(bias.size());
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t j = i % bias.size();
      ASSERT_EQ(sum[i], x[i] + bias[j]);
      ASSERT_NEAR(y[i], exact(Activation::gelu, sum[i]), 2e-6);
      const double term = exact_slope(Activation::gelu, sum[i]) * d_y[i];
      want[j] += term;
      sizes[j] += std::abs(term);
    }
    for (std::size_t j = 0; j < bias.size(); ++j) ASSERT_NEAR(d_bias[j], want[j], 1e-6 * (1 + sizes[j]));
  }
}

// A share near the one asked for, elsewhere by another seed, the same on any number of threads.
TEST(Dropout, DependsOnSeedAndPlace) {
  const std::size_t count = 100003;
  const Floats x(count, 2), residual = numbers(count, 1);
  Floats y(count), again(count), other(count), added(count);
  const auto n = static_cast<int64_t>(count);
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    for (const float share : {0.0f, 0.1f, 0.75f}) {
      run_with_threads(1, [&] { dropout(n, share, 5, x.data(), nullptr, y.data()); });
      run_with_threads(4, [&] { dropout(n, share, 5, x.data(), nullptr, again.data()); });
      dropout(n, share, 6, x.data(), nullptr, other.data());
      dropout(n, share, 5, x.data(), residual.data(), added.data());
      EXPECT_EQ(y, again);
      std::size_t dropped = 0, both = 0;
      for (std::size_t i = 0; i < count; ++i) {
        dropped += y[i] == 0, both += y[i] == 0 && other[i] == 0;
        if (y[i] != 0) {
          ASSERT_FLOAT_EQ(y[i], 2 / (1 - share));
        }
        ASSERT_EQ(added[i], y[i] + residual[i]);
      }
      EXPECT_NEAR(static_cast<double>(dropped) / count, share, 0.006) << set;
      EXPECT_NEAR(static_cast<double>(both) / count, share * share, 0.006) << set;
    }
  }
  set_instruction_set("auto");
}

}  // namespace
}  // namespace trireme::ops::activation_test
