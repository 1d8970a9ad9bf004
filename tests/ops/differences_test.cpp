// Gradients of every implementation of every operator are the slopes of what its own forward pass computes, by central
// differences; what an operator computes forward is held to a definition by the other tests, and convolution's here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/ops/differentiable.h"
#include "tests/ops/with_threads.h"

namespace trireme::ops {
namespace differences_test {

// No two alike and none near 0, in any order: a small step moves no maximum and passes no kink.
Floats spread(int64_t count, std::mt19937& random) {
  Floats x(at(count));
  const float gap = std::max(0.05f, 3 / static_cast<float>(count + 1));
  for (int64_t i = 0; i < count; ++i) x[at(i)] = (static_cast<float>(i - count / 2) + 0.5f) * gap;
  std::shuffle(x.begin(), x.end(), random);
  return x;
}

double inner(const Floats& a, const Floats& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

Floats noise(std::size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats x(count);
  for (float& number : x) number = uniform(random);
  return x;
}

void expect_slopes(const Operator& it, std::mt19937& random) {
  Sizes sizes(random);
  const Instance instance = it.make(sizes);
  Many in;
  for (const int64_t count : instance.inputs) {
    if (it.kinks) {
      in.push_back(in.empty() ? spread(count, random) : Floats(at(count)));
    } else {
      in.push_back(noise(at(count), random));
    }
  }
  const Floats g = noise(instance.forward(in).size(), random);
  const Many gradients = instance.backward(in, g);
  ASSERT_EQ(gradients.size(), in.size());
  for (std::size_t k = 0; k < in.size(); ++k) {
    ASSERT_EQ(gradients[k].size(), in[k].size());
    const Floats direction = noise(in[k].size(), random);
    double slope = 0, size = 0;
    for (const float sign : {1.0f, -1.0f}) {
      Many moved = in;
      for (std::size_t i = 0; i < direction.size(); ++i) moved[k][i] += sign * it.step * direction[i];
      slope += static_cast<double>(sign) * inner(instance.forward(moved), g) / (2 * static_cast<double>(it.step));
    }
    for (std::size_t i = 0; i < direction.size(); ++i)
      size += std::pow(static_cast<double>(gradients[k][i]) * static_cast<double>(direction[i]), 2);
    ASSERT_NEAR(inner(gradients[k], direction), slope, it.tolerance * (0.2 + std::sqrt(size))) << "input " << k;
  }
}

TEST(Differences, GradientsOfEveryOperator) {
  run_with_threads(1, [] {
    for (const Operator& it : operators()) {
      std::mt19937 random(1);
      for (int round = 0; round < 25; ++round) {
        SCOPED_TRACE(it.name + ", shape " + std::to_string(round));
        ASSERT_NO_FATAL_FAILURE(expect_slopes(it, random));
      }
    }
  });
}

// What the reference of convolution computes forward, by loops of its own; the others are held to the reference.
TEST(Differences, TheReferenceOfConvolutionIsTheDefinition) {
  std::mt19937 random(2);
  Sizes size(random);
  for (int round = 0; round < 100; ++round) {
    ConvShape s{.batch = size.batch(2), .height = size.upto(7), .width = size.upto(7)};
    s.groups = size.upto(3);
    s.in_channels = s.groups * size.upto(3);
    s.out_channels = s.groups * size.upto(3);
    for (std::size_t side = 0; side < 2; ++side) {
      s.kernel[side] = size.upto(4);
      s.stride[side] = size.upto(3);
      s.padding[side] = size.upto(3) - 1;
      s.dilation[side] = size.upto(2);
    }
    const ConvAlgorithm& reference = *conv_algorithms().front();
    if (!takes_all(reference, s)) continue;
    const Floats x = noise(at(s.input_size()), random), w = noise(at(s.weight_size()), random);
    Floats y;
    run_with_threads(1, [&] {
      y = workspace_run(reference, s, Pass::forward, {x, w, Floats(at(s.output_size()), NAN)});
    });
    const int64_t of_group = s.in_channels / s.groups, outputs = s.out_channels / s.groups;
    for (int64_t i = 0; i < s.output_size(); ++i) {
      const int64_t o = i % s.out_channels, q = i / s.out_channels % s.out_width(),
                    p = i / s.out_channels / s.out_width() % s.out_height(),
                    n = i / s.out_channels / s.out_width() / s.out_height();
      double sum = 0;
      for (int64_t c = 0; c < of_group; ++c) {
        for (int64_t a = 0; a < s.kernel[0]; ++a) {
          for (int64_t b = 0; b < s.kernel[1]; ++b) {
            const int64_t row = p * s.stride[0] + a * s.dilation[0] - s.padding[0],
                          column = q * s.stride[1] + b * s.dilation[1] - s.padding[1];
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            const int64_t channel = o / outputs * of_group + c;
            sum += static_cast<double>(x[at(((n * s.height + row) * s.width + column) * s.in_channels + channel)]) *
                   static_cast<double>(w[at(((o * of_group + c) * s.kernel[0] + a) * s.kernel[1] + b)]);
          }
        }
      }
      ASSERT_NEAR(y[at(i)], sum, 1e-5) << "round " << round << ", output " << i;
    }
  }
}

}  // namespace differences_test
}  // namespace trireme::ops
