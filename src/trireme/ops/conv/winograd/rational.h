// Exact fractions for constants that are derived at compile time. Terms must stay within 64 bits, as they do for
// interpolation in a few small points; an overflow in a constant expression does not compile.
#pragma once
#include <cstdint>
#include <numeric>

namespace trireme::ops {

struct Rational {
  int64_t above = 0;
  int64_t below = 1;  // positive, without a common divisor

  constexpr Rational() = default;
  constexpr Rational(int64_t whole) : above(whole) {}  // NOLINT: a whole number is a fraction
  constexpr Rational(int64_t a, int64_t b) : above(b < 0 ? -a : a), below(b < 0 ? -b : b) {
    const int64_t common = std::gcd(above, below);
    above /= common;
    below /= common;
  }
  constexpr explicit operator float() const { return static_cast<float>(above) / static_cast<float>(below); }
  constexpr Rational operator-() const { return {-above, below}; }
  constexpr bool operator==(const Rational&) const = default;
  friend constexpr Rational operator+(Rational a, Rational b) {
    return {a.above * b.below + b.above * a.below, a.below * b.below};
  }
  friend constexpr Rational operator-(Rational a, Rational b) { return a + -b; }
  friend constexpr Rational operator*(Rational a, Rational b) { return {a.above * b.above, a.below * b.below}; }
  friend constexpr Rational operator/(Rational a, Rational b) { return {a.above * b.below, a.below * b.above}; }
};

}  // namespace trireme::ops
