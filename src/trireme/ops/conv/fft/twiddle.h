// cos(2πk/n) and sin(2πk/n) for k ≤ n/2 in constant expressions.
#pragma once

namespace trireme::ops {

// Taylor's series of cos and sin at once: terms xⁱ/i!, whose first twenty-four reach f64 within a quarter turn.
constexpr double twiddle_series(double x, int first) {
  double term = first == 0 ? 1 : x, sum = 0;
  for (int i = first; i < 24; i += 2) {
    sum += term;
    term *= -x * x / ((i + 1) * (i + 2));
  }
  return sum;
}

inline constexpr double kHalfTurn = 3.14159265358979323846;

constexpr double twiddle_sine(int k, int n) {
  return 4 * k > n ? twiddle_series(kHalfTurn * (n - 2 * k) / n, 1) : twiddle_series(2 * kHalfTurn * k / n, 1);
}
constexpr double twiddle_cosine(int k, int n) {
  return 4 * k > n ? -twiddle_series(kHalfTurn * (n - 2 * k) / n, 0) : twiddle_series(2 * kHalfTurn * k / n, 0);
}

}  // namespace trireme::ops
