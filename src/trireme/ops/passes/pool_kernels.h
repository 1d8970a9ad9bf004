// The inner loops of pool.cpp: one pixel, all its channels.
#pragma once
#include <cstdint>

namespace trireme::ops::pool {

// Of one window: pixel (i, j) at x + i · row + j · channels. Its place is i · columns + j.
struct Window {
  const float* x = nullptr;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};
void largest(const Window& window, int64_t channels, bool relu, float* y, uint8_t* chosen);
void mean(const Window& window, int64_t channels, float by, float* y);

// dx += the gradient where `chosen` is `place`.
void add_chosen(const float* gradient, const uint8_t* chosen, uint8_t place, int64_t channels, bool first, float* dx);
// dx += gradient · by.
void add_scaled(const float* gradient, float by, int64_t channels, bool first, float* dx);

}  // namespace trireme::ops::pool
