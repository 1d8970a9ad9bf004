#include "trireme/ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace trireme::ops {
namespace {

std::vector<float> noise(int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = uniform(random);
  return numbers;
}

// Against sums in f64, for odd sizes, both orders of both factors, and rows further apart than they are long.
TEST(Matmul, EqualsSumsInDouble) {
  std::mt19937 random(1);
  const auto size = [&] { return std::uniform_int_distribution<int64_t>(0, 70)(random); };
  for (int round = 0; round < 200; ++round) {
    const int64_t m = size(), n = size(), k = size(), gap = round % 3;
    const bool at = round & 1, bt = round & 2, accumulate = round & 4, packed = round & 8;
    const int64_t a_stride = (at ? m : k) + gap, b_stride = (bt ? k : n) + gap, c_stride = n + gap;
    const auto a = noise((at ? k : m) * a_stride, random), b = noise((bt ? n : k) * b_stride, random);
    auto c = noise(m * c_stride, random);
    const auto before = c;
    const Matrix left{a.data(), a_stride, at}, right{b.data(), b_stride, bt};
    if (packed) {
      matmul(m, left, PackedMatrix(k, n, right), c.data(), c_stride, accumulate);
    } else {
      matmul(m, n, k, left, right, c.data(), c_stride, accumulate);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < c_stride; ++j) {
        const auto place = static_cast<std::size_t>(i * c_stride + j);
        if (j >= n) {
          ASSERT_EQ(c[place], before[place]) << "between rows";
          continue;
        }
        double sum = accumulate ? before[place] : 0;
        for (int64_t l = 0; l < k; ++l) {
          const float x =
              at ? a[static_cast<std::size_t>(l * a_stride + i)] : a[static_cast<std::size_t>(i * a_stride + l)];
          const float y =
              bt ? b[static_cast<std::size_t>(j * b_stride + l)] : b[static_cast<std::size_t>(l * b_stride + j)];
          sum += static_cast<double>(x) * y;
        }
        ASSERT_NEAR(c[place], sum, 1e-6 * static_cast<double>(k + 1)) << m << "x" << n << "x" << k;
      }
    }
  }
}

}  // namespace
}  // namespace trireme::ops
