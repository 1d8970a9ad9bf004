// Functions of many numbers.
#pragma once
#include <cstdint>

namespace trireme::ops {

enum class Unary { exp, sigmoid, tanh, erf };
// y(i) = f(x(i)), i < n; y may be x.
void apply(Unary function, const float* x, int64_t n, float* y);

}  // namespace trireme::ops
