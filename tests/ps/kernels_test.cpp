// A server's inner loops against the same sums written out, element by element.
#include "trireme/ps/server/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "trireme/base/mix.h"

namespace trireme::ps::kernels {
namespace {

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = static_cast<float>(static_cast<double>(mixed(seed << 32 | i) >> 40) * 0x1p-23 - 1);
  }
  return all;
}

TEST(Kernels, WhatAMessageSaidOfX) {
  for (std::size_t n : {0, 1, 7, 8, 9, 1001}) {
    const auto x = numbers(n, 3), left = numbers(n, 4);
    Said expected;
    for (std::size_t i = 0; i < n; ++i) {
      const double whole = x[i], rest = left[i], said = whole - rest;
      expected.square += whole * whole;
      expected.square_left += rest * rest;
      expected.product += whole * said;
      expected.square_said += said * said;
    }
    const auto sums = said_of(x.data(), left.data(), n);
    EXPECT_NEAR(sums.square, expected.square, 1e-12 * static_cast<double>(n));
    EXPECT_NEAR(sums.square_left, expected.square_left, 1e-12 * static_cast<double>(n));
    EXPECT_NEAR(sums.product, expected.product, 1e-12 * static_cast<double>(n));
    EXPECT_NEAR(sums.square_said, expected.square_said, 1e-12 * static_cast<double>(n));
    std::vector<float> difference(n);
    subtract(difference.data(), x.data(), left.data(), n);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(difference[i], x[i] - left[i]);
  }
}

}  // namespace
}  // namespace trireme::ps::kernels
