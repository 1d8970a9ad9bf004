// The matrices of minimal filtering, in exact fractions.
#include <gtest/gtest.h>

#include "trireme/ops/conv/winograd/matrices.h"

namespace trireme::ops {
namespace winograd_test {

template <int m, int r>
void expect_proved() {
  constexpr auto it = derive_winograd<m, r>();
  EXPECT_EQ(it.n, m + r - 1) << "multiplications";
  EXPECT_TRUE(proves_filtering(it)) << "F(" << m << ", " << r << ")";
  // Any one wrong coefficient is found.
  for (std::size_t t = 0; t < it.b.size(); ++t) {
    auto wrong = it;
    wrong.b[t][t / 2] = wrong.b[t][t / 2] + Rational{1, 1000};
    EXPECT_FALSE(proves_filtering(wrong));
  }
}

TEST(Winograd, MatricesGiveTheFiltering) {
  expect_proved<1, 3>();
  expect_proved<2, 3>();
  expect_proved<3, 2>();
  expect_proved<3, 3>();
  expect_proved<4, 3>();
  expect_proved<3, 4>();
  expect_proved<5, 3>();
  expect_proved<6, 3>();
  expect_proved<2, 5>();
  expect_proved<4, 5>();
}

// Whether every element is the other's, or all are its opposites.
template <std::size_t n>
bool same_but_sign(const std::array<Rational, n>& row, const std::array<Rational, n>& other) {
  bool same = true, opposite = true;
  for (std::size_t i = 0; i < n; ++i) {
    same = same && row[i] == other[i];
    opposite = opposite && row[i] == -other[i];
  }
  return same || opposite;
}

// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", (7); rows may differ in sign.
TEST(Winograd, TwoOutputsOfThreeWeightsAreThePapers) {
  constexpr auto it = derive_winograd<2, 3>();
  const Rational half{1, 2};
  const std::array<std::array<Rational, 4>, 4> b{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
  const std::array<std::array<Rational, 3>, 4> g{{{1, 0, 0}, {half, half, half}, {half, -half, half}, {0, 0, 1}}};
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_TRUE(same_but_sign(it.b[t], b[t])) << t;
    EXPECT_TRUE(same_but_sign(it.g[t], g[t])) << t;
  }
}

TEST(Winograd, FractionsAreReduced) {
  EXPECT_EQ((Rational{6, -4}), (Rational{-3, 2}));
  EXPECT_EQ((Rational{1, 2} + Rational{1, 3}), (Rational{5, 6}));
  EXPECT_EQ((Rational{1, 2} / Rational{-3, 4}), (Rational{-2, 3}));
  EXPECT_EQ((Rational{2, 3} * Rational{3, 2}), Rational(1));
}

}  // namespace winograd_test
}  // namespace trireme::ops
