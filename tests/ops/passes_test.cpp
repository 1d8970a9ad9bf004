// Batch normalization and pooling against sums in f64 over random shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/ops/passes/batch_norm.h"
#include "trireme/ops/passes/pool.h"

namespace trireme::ops {
namespace passes_test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats uniform(int64_t count, std::mt19937& random, float around = 0) {
  std::uniform_real_distribution<float> from(-1, 1);
  Floats numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = around + from(random);
  return numbers;
}

struct Sizes {
  explicit Sizes(std::mt19937& random) : random_(random) {}
  int64_t operator()(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  std::mt19937& random_;
};

TEST(BatchNormPass, EqualsSumsInDouble) {
  std::mt19937 random(1);
  Sizes size(random);
  for (int round = 0; round < 80; ++round) {
    const RowShape shape{size(1, round % 20 == 0 ? 1000 : 60), round % 4 == 0 ? 16 * size(1, 9) : size(1, 90)};
    const auto channels = static_cast<std::size_t>(shape.channels);
    const bool relu = round & 1, adds = round & 2;
    const double epsilon = 1e-5;
    const auto x = uniform(shape.size(), random, static_cast<float>(size(-3, 3))), skip = uniform(shape.size(), random);
    const auto gradient = uniform(shape.size(), random), weight = uniform(shape.channels, random),
               bias = uniform(shape.channels, random);

    Doubles mean(channels), variance(channels), sums(channels), products(channels);
    Floats scale(channels), shift(channels), slope(channels), offset(channels);
    Floats y(x.size()), dx(x.size()), dskip(x.size());
    batch_statistics(shape, x.data(), mean, variance);
    normalization_of(mean, variance, epsilon, weight.data(), bias.data(), scale, shift);
    normalize(shape, x.data(), {scale.data(), shift.data(), adds ? skip.data() : nullptr, relu}, y.data());
    const NormGradients of{relu ? y.data() : nullptr, x.data(), gradient.data()};
    const Floats means(mean.begin(), mean.end());
    norm_sums(shape, of, means.data(), sums, products);
    slopes_of(variance, epsilon, shape.rows, sums, products, scale, slope, offset);
    norm_backward(shape, of, {scale.data(), means.data(), slope.data(), offset.data()}, dx.data(),
                  adds ? dskip.data() : nullptr);

    for (std::size_t c = 0; c < channels; ++c) {
      const auto rows = static_cast<double>(shape.rows);
      double m = 0, v = 0, sum = 0, product = 0;
      for (std::size_t i = c; i < x.size(); i += channels) m += x[i] / rows;
      for (std::size_t i = c; i < x.size(); i += channels) v += (x[i] - m) * (x[i] - m) / rows;
      ASSERT_NEAR(mean[c], m, 1e-6 * (1 + std::abs(m)));
      ASSERT_NEAR(variance[c], v, 1e-6 + 1e-5 * v);
      const double norm = 1 / std::sqrt(v + epsilon);
      const auto g = [&](std::size_t i) { return relu && y[i] <= 0 ? 0.0 : gradient[i]; };
      for (std::size_t i = c; i < x.size(); i += channels) {
        double wanted = (x[i] - m) * norm * weight[c] + bias[c] + (adds ? skip[i] : 0.0F);
        if (relu) wanted = std::max(wanted, 0.0);
        ASSERT_NEAR(y[i], wanted, 1e-5 * (1 + (1 + std::abs(m)) * norm)) << shape.rows << "x" << shape.channels;
        sum += g(i);
        product += g(i) * (x[i] - m);
      }
      ASSERT_NEAR(sums[c], sum, 1e-5 * (1 + std::sqrt(rows)));
      ASSERT_NEAR(products[c], product, 2e-5 * (1 + std::sqrt(rows)));
      for (std::size_t i = c; i < x.size(); i += channels) {
        const double wanted = weight[c] * norm * (g(i) - sum / rows - (x[i] - m) * norm * norm * product / rows);
        ASSERT_NEAR(dx[i], wanted, 1e-5 * (1 + norm + norm * norm * norm));
        if (adds) {
          ASSERT_EQ(dskip[i], static_cast<float>(g(i)));
        }
      }
    }
  }
}

TEST(ReluPass, MasksAndAddsUp) {
  std::mt19937 random(4);
  Sizes size(random);
  for (int round = 0; round < 60; ++round) {
    const RowShape shape{size(0, 300), size(1, 70)};
    const auto channels = static_cast<std::size_t>(shape.channels);
    const bool relu = round & 1;
    const auto gradient = uniform(shape.size(), random), output = uniform(shape.size(), random);
    Floats masked(gradient.size(), 7), sums(channels, 7);
    relu_backward(shape, gradient.data(), relu ? output.data() : nullptr, relu ? masked.data() : nullptr, sums.data());
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::size_t i = c; i < gradient.size(); i += channels) {
        const float g = relu && output[i] <= 0 ? 0 : gradient[i];
        if (relu) {
          ASSERT_EQ(masked[i], g);
        }
        sum += g;
      }
      ASSERT_NEAR(sums[c], sum, 1e-4);
    }
  }
}

// A mean a thousand times the deviation: squares in f32 would keep nothing of it.
TEST(BatchNormPass, VarianceFarFromZero) {
  std::mt19937 random(2);
  const RowShape shape{5000, 3};
  const auto x = uniform(shape.size(), random, 1000);
  Doubles mean(3), variance(3);
  batch_statistics(shape, x.data(), mean, variance);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(mean[c], 1000, 0.05);
    EXPECT_NEAR(variance[c], 1.0 / 3, 0.02);
  }
}

TEST(BatchNormPass, ReluKeepsWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Floats x{nan, -1, 2}, one{1}, zero{0};
  Floats y(3);
  normalize({3, 1}, x.data(), {one.data(), zero.data(), nullptr, true}, y.data());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 2);
}

PoolSide random_side(Sizes& size, bool adaptive) {
  const int64_t pixels = size(1, 12);
  if (adaptive) return PoolSide::adaptive(pixels, size(1, 14));
  const int64_t kernel = size(1, pixels), padding = size(0, kernel / 2);
  return PoolSide::windows(pixels, kernel, size(1, 4), padding);
}

TEST(Pooling, EqualsLoops) {
  std::mt19937 random(3);
  Sizes size(random);
  for (int round = 0; round < 300; ++round) {
    const bool relu = round & 1;
    const PoolShape shape{size(0, 3), size(1, 40), random_side(size, round % 3 == 0),
                          random_side(size, round % 3 == 0)};
    if (shape.rows.longest() * shape.columns.longest() > kLargestMaxWindow) continue;
    const auto x = uniform(shape.input_size(), random), gradient = uniform(shape.output_size(), random);
    Floats most(gradient.size(), 7), mean(gradient.size(), 7), dmost(x.size(), 7), dmean(x.size(), 7);
    std::vector<uint8_t> chosen(gradient.size());
    const int64_t divisor = round % 5 == 0 ? 4 : 0;
    max_pool(shape, x.data(), relu, most.data(), chosen.data());
    max_pool_backward(shape, gradient.data(), chosen.data(), dmost.data());
    mean_pool(shape, x.data(), divisor, mean.data());
    mean_pool_backward(shape, gradient.data(), divisor, dmean.data());

    Doubles wanted_most(x.size()), wanted_mean(x.size());
    std::size_t o = 0;
    for (int64_t n = 0; n < shape.batch; ++n) {
      for (int64_t p = 0; p < shape.rows.outputs(); ++p) {
        for (int64_t q = 0; q < shape.columns.outputs(); ++q) {
          for (int64_t c = 0; c < shape.channels; ++c, ++o) {
            const auto &rows = shape.rows.window(p), &columns = shape.columns.window(q);
            std::size_t best = x.size();
            double sum = 0;
            const auto pixels =
                static_cast<double>(divisor ? divisor : (rows.end - rows.begin) * (columns.end - columns.begin));
            for (int64_t i = rows.begin; i < rows.end; ++i) {
              for (int64_t j = columns.begin; j < columns.end; ++j) {
                const auto at = static_cast<std::size_t>(
                    ((n * shape.rows.size() + i) * shape.columns.size() + j) * shape.channels + c);
                if (best == x.size() || x[at] > x[best]) best = at;
                sum += x[at];
                wanted_mean[at] += gradient[o] / pixels;
              }
            }
            ASSERT_EQ(most[o], relu ? std::max(x[best], 0.0F) : x[best]);
            ASSERT_NEAR(mean[o], sum / pixels, 1e-5);
            if (!relu || x[best] > 0) wanted_most[best] += gradient[o];
          }
        }
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(dmost[i], wanted_most[i], 1e-5);
      ASSERT_NEAR(dmean[i], wanted_mean[i], 1e-5);
    }
  }
}

TEST(Pooling, NanIsTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const PoolShape shape{1, 1, PoolSide::windows(2, 2, 2, 0), PoolSide::windows(2, 2, 2, 0)};
  for (const bool relu : {false, true}) {
    const Floats x{3, nan, 5, 1};
    float y = 0;
    uint8_t chosen = 0;
    max_pool(shape, x.data(), relu, &y, &chosen);
    EXPECT_TRUE(std::isnan(y));
    EXPECT_EQ(chosen, 1);
  }
}

TEST(Pooling, RefusesWhatIsNoWindow) {
  EXPECT_THROW(PoolSide::windows(3, 5, 1, 0), ConfigError);
  EXPECT_THROW(PoolSide::windows(3, 2, 0, 0), ConfigError);
  EXPECT_THROW(PoolSide::windows(3, 2, 1, 2), ConfigError);
  EXPECT_THROW(PoolSide::adaptive(3, 0), ConfigError);
  const PoolShape large{1, 1, PoolSide::adaptive(16, 1), PoolSide::adaptive(16, 1)};
  const Floats x(256);
  float y = 0;
  uint8_t chosen = 0;
  EXPECT_THROW(max_pool(large, x.data(), false, &y, &chosen), ConfigError);
}

}  // namespace passes_test
}  // namespace trireme::ops
