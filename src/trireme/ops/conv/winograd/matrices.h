// Winograd's minimal filtering F(m, r) (Winograd 1980; Lavin and Gray 2015), derived by Cook and Toom's construction:
// m outputs of a filter of r weights over n = m + r − 1 inputs, by n multiplications instead of m · r,
//
//   y = Aᵀ [(G w) ⊙ (Bᵀ d)],   y_i = Σ_j w_j · d_{i+j}.
//
// Linear convolution is the product of two polynomials, found from its values in n − 1 points a_i and at infinity: its
// transpose is filtering. Row i of A holds the powers of a_i up to m − 1, row i of G those up to r − 1 over
// f_i = Π_{j≠i} (a_i − a_j), row i of Bᵀ the coefficients of Π_{j≠i} (x − a_j); the rows of infinity hold a one at the
// highest power, and the coefficients of Π_j (x − a_j).
//
// The points are 0 and pairs ±a, one beside the other: rows of a pair have equal coefficients at even or odd places and
// opposite ones at the others, so transforms compute both parts once (transforms-inl.h).
#pragma once
#include <array>
#include <cstddef>

#include "trireme/ops/conv/winograd/rational.h"

namespace trireme::ops {

template <int m, int r>
struct Winograd {
  static constexpr int n = m + r - 1;
  std::array<std::array<Rational, m>, n> a;
  std::array<std::array<Rational, r>, n> g;
  std::array<std::array<Rational, n>, n> b;  // Bᵀ
};

namespace internal {

// The coefficients of Π (x − a_j), j ≠ left_out.
template <std::size_t n>
constexpr std::array<Rational, n + 1> product_of_roots(const std::array<Rational, n>& points, std::size_t left_out) {
  std::array<Rational, n + 1> coefficients{};
  coefficients[0] = 1;
  std::size_t degree = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (j == left_out) continue;
    ++degree;
    for (std::size_t k = degree; k > 0; --k) coefficients[k] = coefficients[k - 1] - points[j] * coefficients[k];
    coefficients[0] = -points[j] * coefficients[0];
  }
  return coefficients;
}

template <std::size_t count>
constexpr void powers(Rational x, Rational first, std::array<Rational, count>& row) {
  for (Rational& element : row) {
    element = first;
    first = first * x;
  }
}

}  // namespace internal

// 0, 1, −1, 2, −2, 1/2, −1/2: as many as asked for.
template <std::size_t count>
constexpr std::array<Rational, count> winograd_points() {
  constexpr std::array<Rational, 7> all{0, 1, -1, 2, -2, Rational{1, 2}, Rational{-1, 2}};
  static_assert(count <= all.size());
  std::array<Rational, count> points;
  for (std::size_t i = 0; i < count; ++i) points[i] = all[i];
  return points;
}

template <int m, int r>
constexpr Winograd<m, r> derive_winograd() {
  constexpr std::size_t n = m + r - 1;
  constexpr auto points = winograd_points<n - 1>();
  Winograd<m, r> it{};
  for (std::size_t i = 0; i + 1 < n; ++i) {
    Rational f = 1;
    for (std::size_t j = 0; j + 1 < n; ++j) {
      if (j != i) f = f * (points[i] - points[j]);
    }
    internal::powers(points[i], 1, it.a[i]);
    internal::powers(points[i], Rational(1) / f, it.g[i]);
    it.b[i] = internal::product_of_roots(points, i);
  }
  it.a[n - 1][m - 1] = 1;
  it.g[n - 1][r - 1] = 1;
  it.b[n - 1] = internal::product_of_roots(points, n);
  return it;
}

// Whether Σ_t A_ti · G_tj · Bᵀ_tk is 1 where k = i + j and 0 elsewhere: y = Aᵀ [(G w) ⊙ (Bᵀ d)] for every w and d.
template <int m, int r>
constexpr bool proves_filtering(const Winograd<m, r>& it) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < r; ++j) {
      for (std::size_t k = 0; k < it.b.size(); ++k) {
        Rational sum = 0;
        for (std::size_t t = 0; t < it.b.size(); ++t) sum = sum + it.a[t][i] * it.g[t][j] * it.b[t][k];
        if (sum != Rational(k == i + j ? 1 : 0)) return false;
      }
    }
  }
  return true;
}

}  // namespace trireme::ops
