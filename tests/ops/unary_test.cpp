#include "trireme/ops/elementwise/unary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "trireme/ops/instruction_set.h"

namespace trireme::ops::unary_test {
namespace {

double exact(Unary function, double x) {
  switch (function) {
    case Unary::exp:
      return std::exp(x);
    case Unary::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Unary::tanh:
      return std::tanh(x);
    case Unary::erf:
      return std::erf(x);
  }
  return 0;
}

// In steps between neighbouring floats at the exact result; below the least normal one, in its steps.
double error(float got, double want) {
  const int exponent = std::max(std::ilogb(static_cast<float>(want)), -126);
  return std::abs(got - want) / std::ldexp(1.0, exponent - 23);
}

// Every 4,001st float, in every instruction set.
TEST(Unary, NearTheExactResult) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4001) {
    const auto number = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(number)) x.push_back(number);
  }
  for (float number = -20; number < 20; number += 0.0017f) x.push_back(number);
  std::vector<float> y(x.size());
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    for (const Unary function : {Unary::exp, Unary::sigmoid, Unary::tanh, Unary::erf}) {
      apply(function, x.data(), static_cast<int64_t>(x.size()), y.data());
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = exact(function, x[i]);
        if (std::abs(want) > std::numeric_limits<float>::max()) {
          ASSERT_TRUE(std::isinf(y[i])) << x[i];
          continue;
        }
        if (function == Unary::sigmoid && want < std::numeric_limits<float>::min()) {
          ASSERT_LE(y[i], std::numeric_limits<float>::min()) << x[i];
          continue;
        }
        if (error(y[i], want) > worst) worst = error(y[i], want), where = x[i];
      }
      EXPECT_LE(worst, 3) << set << " " << static_cast<int>(function) << " at " << where;
    }
  }
  set_instruction_set("auto");
}

TEST(Unary, EndsOfTheLine) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> x{infinite, -infinite, NAN, 0, -0.0f};
  std::vector<float> y(5);
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    apply(Unary::exp, x.data(), 5, y.data());
    EXPECT_EQ(y[0], infinite);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2])) << set;
    EXPECT_EQ(y[3], 1);
    for (const Unary function : {Unary::sigmoid, Unary::tanh, Unary::erf}) {
      apply(function, x.data(), 5, y.data());
      EXPECT_EQ(y[0], 1);
      EXPECT_EQ(y[1], function == Unary::sigmoid ? 0 : -1);
      EXPECT_TRUE(std::isnan(y[2])) << set << " " << static_cast<int>(function);
      EXPECT_EQ(y[3], function == Unary::sigmoid ? 0.5f : 0);
    }
  }
  set_instruction_set("auto");
}

}  // namespace
}  // namespace trireme::ops::unary_test
