// The most norm that a gradient may have.
#pragma once
#include <algorithm>
#include <span>

namespace trireme::sync {

// Scales a gradient down to it; 0: any norm.
void shorten(std::span<float> gradient, double most);

// The smaller of two bounds, of which 0 is none.
inline double stricter(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

}  // namespace trireme::sync
