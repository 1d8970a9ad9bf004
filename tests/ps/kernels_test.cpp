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

struct State {
  std::vector<float> w, m;
};

State written_out(State state, const std::vector<std::vector<float>>& gradients, const Sgd& c) {
  for (std::size_t i = 0; i < state.w.size(); ++i) {
    float g = gradients[0][i];
    for (std::size_t k = 1; k < gradients.size(); ++k) g += gradients[k][i];
    float d = g + c.weight_decay * state.w[i];
    if (!state.m.empty()) {
      state.m[i] = c.momentum * state.m[i] + d;
      d = c.nesterov ? d + c.momentum * state.m[i] : state.m[i];
    }
    state.w[i] -= c.lr * d;
  }
  return state;
}

TEST(Kernels, ARoundIsTheSumTheUpdateAndTheCopies) {
  for (std::size_t n : {1, 15, 16, 511, 512, 513, 5000}) {
    for (std::size_t parts : {1, 2, 5}) {
      for (bool momentum : {false, true}) {
        for (bool nesterov : {false, true}) {
          const Sgd c{0.1f, 0.9f, 1e-4f, nesterov};
          State state{numbers(n, 1), momentum ? numbers(n, 2) : std::vector<float>()};
          std::vector<std::vector<float>> gradients;
          std::vector<const float*> from;
          for (std::size_t k = 0; k < parts; ++k) gradients.push_back(numbers(n, 10 + k));
          for (const auto& gradient : gradients) from.push_back(gradient.data());
          const auto expected = written_out(state, gradients, c);
          // One of them is not where vectors begin.
          std::vector<float> copy(n), other(n + 1);
          float* const copies[] = {copy.data(), other.data() + 1};
          sgd_round({.w = state.w.data(),
                     .m = momentum ? state.m.data() : nullptr,
                     .gradients = from.data(),
                     .parts = parts,
                     .copies = copies,
                     .copied = 2,
                     .n = n,
                     .past_caches = parts == 2},
                    c);
          stream_end();
          EXPECT_EQ(state.w, expected.w) << n << " elements of " << parts;
          EXPECT_EQ(state.m, expected.m) << n << " elements of " << parts;
          EXPECT_EQ(copy, expected.w);
          EXPECT_EQ(std::vector<float>(other.begin() + 1, other.end()), expected.w);
        }
      }
    }
  }
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
