// Random products of matrices, and the right results.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "trireme/ops/matmul/matmul.h"

namespace trireme::ops::matmul_test {

inline std::vector<float> noise(int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = uniform(random);
  return numbers;
}

struct Case {
  int64_t m, n, k, gap;
  bool a_transposed, b_transposed, accumulate, bias, relu;
  std::vector<float> a, b, c, biases;

  int64_t a_stride() const { return (a_transposed ? m : k) + gap; }
  int64_t b_stride() const { return (b_transposed ? k : n) + gap; }
  int64_t c_stride() const { return n + gap; }
  Matrix left() const { return {a.data(), a_stride(), a_transposed}; }
  Matrix right() const { return {b.data(), b_stride(), b_transposed}; }
  Epilogue epilogue() const { return {bias ? biases.data() : nullptr, relu}; }
  Product product(std::vector<float>& out) const {
    return {m, n, k, left(), right(), out.data(), c_stride(), accumulate, epilogue()};
  }
  void fill(std::mt19937& random) {
    a = noise((a_transposed ? k : m) * a_stride(), random);
    b = noise((b_transposed ? n : k) * b_stride(), random);
    c = noise(m * c_stride(), random);
    biases = noise(n, random);
  }
};

// Both orders of both factors, rows further apart than they are long, what was there added to or not.
inline Case make_case(int round, int64_t most, std::mt19937& random) {
  const auto size = [&] { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  const auto coin = [&] { return random() % 2 == 0; };
  Case it{size(), size(), size(), round % 3, coin(), coin(), coin(), coin(), coin(), {}, {}, {}, {}};
  it.fill(random);
  return it;
}

// Against sums in f64, as near as the algorithm's class of accuracy promises for numbers in [−1, 1].
inline void expect_product(const Case& it, const std::vector<float>& c, const std::string& what,
                           Accuracy accuracy = Accuracy::f32) {
  const double bound = accuracy == Accuracy::f32 ? 4e-7 : 4e-3;  // of a product: both factors are off by 2⁻⁹
  const auto at = [](const std::vector<float>& x, int64_t place) { return x[static_cast<std::size_t>(place)]; };
  for (int64_t i = 0; i < it.m; ++i) {
    for (int64_t j = 0; j < it.c_stride(); ++j) {
      const int64_t place = i * it.c_stride() + j;
      if (j >= it.n) {
        ASSERT_EQ(at(c, place), at(it.c, place)) << what << ": between rows";
        continue;
      }
      double sum = it.accumulate ? at(it.c, place) : 0;
      for (int64_t l = 0; l < it.k; ++l) {
        const float x = at(it.a, it.a_transposed ? l * it.a_stride() + i : i * it.a_stride() + l);
        const float y = at(it.b, it.b_transposed ? j * it.b_stride() + l : l * it.b_stride() + j);
        sum += static_cast<double>(x) * y;
      }
      if (it.bias) sum += at(it.biases, j);
      if (it.relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(at(c, place), sum, bound * static_cast<double>(it.k + 4))
          << what << ": " << it.m << "x" << it.n << "x" << it.k;
    }
  }
}

}  // namespace trireme::ops::matmul_test
