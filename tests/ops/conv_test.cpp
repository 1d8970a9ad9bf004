// Every algorithm of convolution against the reference.
#include "trireme/ops/conv/conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/ops/with_threads.h"
#include "trireme/ops/conv/algorithms.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::ops {
namespace conv_test {

constexpr std::byte kGuard{0x5c};
constexpr int64_t kGuards = 256;  // bytes

struct Case {
  ConvShape shape;
  std::vector<float> input, weight, output, bias;

  Case(const ConvShape& its, std::mt19937& random) : shape(its) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&](std::vector<float>& numbers, int64_t count) {
      numbers.resize(static_cast<std::size_t>(count));
      for (float& number : numbers) number = uniform(random);
    };
    fill(input, shape.input_size());
    fill(weight, shape.weight_size());
    fill(output, shape.output_size());
    fill(bias, shape.out_channels);
  }

  // Small ones, of which bf16 rounds nothing and sums are exact.
  void round_to_whole_numbers() {
    for (auto* numbers : {&input, &weight, &output, &bias}) {
      for (float& x : *numbers) x = std::round(x * 9);
    }
  }

  // What the pass writes, by this algorithm, in exactly the workspace that it asks for.
  std::vector<float> result(const ConvAlgorithm& algorithm, Pass pass, bool biased) const {
    Case copy = *this;
    std::vector<float>& written = pass == Pass::forward ? copy.output : pass == Pass::data ? copy.input : copy.weight;
    std::fill(written.begin(), written.end(), NAN);
    const int64_t size = algorithm.cost(shape, pass).workspace, whole = (size + 63) / 64 * 64 + kGuards;
    const std::unique_ptr<std::byte, decltype(&std::free)> memory(
        static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(whole))), &std::free);
    std::fill_n(memory.get(), whole, kGuard);
    algorithm.run(shape, pass,
                  {.input = copy.input.data(),
                   .weight = copy.weight.data(),
                   .output = copy.output.data(),
                   .bias = biased ? copy.bias.data() : nullptr},
                  {memory.get(), static_cast<std::size_t>(size)});
    EXPECT_TRUE(std::all_of(memory.get() + size, memory.get() + whole, [](std::byte byte) { return byte == kGuard; }))
        << algorithm.name() << " writes past its workspace";
    return written;
  }
};

std::string text(const ConvShape& shape, Pass pass) {
  const auto two = [](const std::array<int64_t, 2>& sides) {
    return std::to_string(sides[0]) + "x" + std::to_string(sides[1]);
  };
  return std::string(name(pass)) + ", batch " + std::to_string(shape.batch) + ", " + std::to_string(shape.in_channels) +
         " channels " + two({shape.height, shape.width}) + " to " + std::to_string(shape.out_channels) + ", kernel " +
         two(shape.kernel) + ", stride " + two(shape.stride) + ", padding " + two(shape.padding) + ", dilation " +
         two(shape.dilation) + ", groups " + std::to_string(shape.groups);
}

bool possible(const ConvShape& shape) {
  return shape.height + 2 * shape.padding[0] > shape.dilation[0] * (shape.kernel[0] - 1) &&
         shape.width + 2 * shape.padding[1] > shape.dilation[1] * (shape.kernel[1] - 1);
}

// Sizes that are odd, small, above a block; every other property in every combination sooner or later.
ConvShape random_shape(std::mt19937& random) {
  const auto from = [&](std::initializer_list<int64_t> values) {
    return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  for (;;) {
    ConvShape shape{
        .batch = from({0, 1, 1, 2, 3}), .height = from({1, 2, 4, 5, 7, 9, 12}), .width = from({1, 3, 4, 6, 8, 13})};
    shape.groups = from({1, 1, 1, 2, 3});
    shape.in_channels = shape.groups * from({1, 1, 2, 3, 5, 16, 19, 40});
    shape.out_channels = shape.groups * from({1, 1, 2, 6, 7, 16, 21, 33, 70});
    if (from({0, 0, 0, 1}) == 1) shape.out_channels = shape.groups = shape.in_channels;  // depthwise
    for (std::size_t side = 0; side < 2; ++side) {
      shape.kernel[side] = from({1, 2, 3, 3, 5, 7});
      shape.stride[side] = from({1, 1, 1, 2, 3});
      shape.padding[side] = from({0, 1, 2, 4, 8});
      shape.dilation[side] = from({1, 1, 1, 2, 3});
    }
    if (from({0, 0, 1}) == 1) {  // what the fast algorithms take
      shape.kernel[1] = shape.kernel[0] = from({3, 3, 5, 7});
      shape.stride = shape.dilation = {1, 1};
      shape.groups = 1;
    }
    if (from({0, 0, 0, 0, 0, 0, 0, 1}) == 1) {
      shape.kernel = {shape.height, shape.width};
      shape.dilation = {1, 1};
    }
    if (possible(shape) && shape.flops() < 4e6) return shape;  // the reference takes milliseconds
  }
}

void expect_near(const std::vector<float>& result, const std::vector<float>& right, double tolerance,
                 const std::string& where) {
  double largest = 0, worst = 0;
  for (const float x : right) largest = std::max(largest, static_cast<double>(std::abs(x)));
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - right[i]);
    worst = std::max(worst, std::isnan(error) ? INFINITY : error);
  }
  ASSERT_LE(worst, tolerance * largest) << where;
}

void compare_all(const ConvShape& shape, std::mt19937& random) {
  const Case it(shape, random);
  for (const Pass pass : kPasses) {
    const bool biased = random() % 2 == 0;
    const std::vector<float> right = it.result(*conv_algorithms().front(), pass, biased);
    for (const ConvAlgorithm* algorithm : conv_algorithms().subspan(1)) {
      if (!algorithm->takes(shape, pass)) continue;
      const std::string where = std::string(algorithm->name()) + ", " + text(shape, pass);
      ASSERT_NO_FATAL_FAILURE(
          expect_near(it.result(*algorithm, pass, biased), right, tolerance(algorithm->accuracy()), where));
    }
  }
}

TEST(Conv, EveryAlgorithmEqualsTheReference) {
  std::mt19937 random(1);
  run_with_threads(1, [&] {
    for (int round = 0; round < 400; ++round) {
      const ConvShape shape = random_shape(random);
      ASSERT_NO_THROW(check(shape));
      ASSERT_NO_FATAL_FAILURE(compare_all(shape, random));
    }
  });
}

// One group and channels enough for a padded image in bf16: planes smaller than a tile, several pictures a block,
// blocks of some rows.
ConvShape padded_shape(std::mt19937& random, int round) {
  for (;;) {
    ConvShape shape = random_shape(random);
    shape.groups = 1;
    shape.in_channels = std::array{16, 19, 32, 40, 70}[random() % 5];
    shape.out_channels = std::array{16, 17, 33, 50}[random() % 4];
    shape.batch = std::array{0, 1, 2, 5, 9}[random() % 5];
    if (round % 5 == 0) shape.height = 40, shape.stride[0] = 1;
    if (possible(shape) && shape.flops() < (round % 5 == 0 ? 6e6 : 1.5e6)) return shape;
  }
}

void compare_emulated(const ConvShape& shape, std::mt19937& random, bool whole_numbers) {
  const ConvAlgorithm& emulated = emulated_amx_conv();
  Case it(shape, random);
  if (whole_numbers) it.round_to_whole_numbers();
  for (const Pass pass : kPasses) {
    const std::vector<float> right = it.result(*conv_algorithms().front(), pass, true);
    const std::vector<float> result = it.result(emulated, pass, true);
    if (whole_numbers) {
      ASSERT_EQ(result, right) << text(shape, pass);
    } else {
      ASSERT_NO_FATAL_FAILURE(expect_near(result, right, tolerance(emulated.accuracy()), text(shape, pass)));
    }
  }
}

// The loops for tile registers on emulated ones, on any CPU.
TEST(Conv, Bf16AmxEmulatedEqualsTheReference) {
  std::mt19937 random(6);
  run_with_threads(1, [&] {
    for (int round = 0; round < 40; ++round) {
      ConvShape shape = random_shape(random);
      while (shape.flops() > 2e5) shape = random_shape(random);
      ASSERT_NO_FATAL_FAILURE(compare_emulated(shape, random, false));
    }
    for (int round = 0; round < 60; ++round) {
      ASSERT_NO_FATAL_FAILURE(compare_emulated(padded_shape(random, round), random, round % 2 == 0));
    }
  });
}

TEST(Conv, Bf16AmxEmulatedHasTheSameBitsOnAnyNumberOfThreads) {
  std::mt19937 random(8);
  for (int round = 0; round < 8; ++round) {
    const ConvShape shape = padded_shape(random, round);
    const Case it(shape, random);
    for (const Pass pass : kPasses) {
      std::vector<float> alone, team;
      run_with_threads(1, [&] { alone = it.result(emulated_amx_conv(), pass, true); });
      run_with_threads(3, [&] { team = it.result(emulated_amx_conv(), pass, true); });
      ASSERT_EQ(alone, team) << text(shape, pass);
    }
  }
}

// Of small whole numbers bf16 rounds nothing.
TEST(Conv, Bf16OfWholeNumbersIsExact) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Case it(random_shape(random), random);
    it.round_to_whole_numbers();
    for (const Pass pass : kPasses) {
      const std::vector<float> right = it.result(*conv_algorithms().front(), pass, true);
      for (const ConvAlgorithm* algorithm : conv_algorithms()) {
        if (algorithm->accuracy() != Accuracy::bf16 || !algorithm->takes(it.shape, pass)) continue;
        ASSERT_EQ(it.result(*algorithm, pass, true), right) << algorithm->name() << ", " << text(it.shape, pass);
      }
    }
  }
}

TEST(Conv, EveryInstructionSet) {
  std::mt19937 random(5);
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    run_with_threads(1, [&] {
      for (int round = 0; round < 60; ++round) {
        ASSERT_NO_FATAL_FAILURE(compare_all(random_shape(random), random)) << set;
      }
    });
  }
  set_instruction_set("auto");
}

// Large enough for several blocks, strips and parts of a team.
TEST(Conv, EveryAlgorithmEqualsTheReferenceOnLargerImages) {
  std::mt19937 random(2);
  for (const ConvShape& shape : {ConvShape{.batch = 3,
                                .in_channels = 40,
                                .height = 30,
                                .width = 29,
                                .out_channels = 72,
                                .kernel = {3, 3},
                                .padding = {1, 1}},
                                 ConvShape{.batch = 2,
                                 .in_channels = 3,
                                 .height = 40,
                                 .width = 40,
                                 .out_channels = 24,
                                 .kernel = {7, 7},
                                 .stride = {2, 2},
                                 .padding = {3, 3}},
                                 ConvShape{.batch = 30,
                                 .in_channels = 24,
                                 .height = 4,
                                 .width = 4,
                                 .out_channels = 130,
                                 .kernel = {3, 3},
                                 .padding = {1, 1}},
                                 ConvShape{.batch = 2,
                                 .in_channels = 270,
                                 .height = 5,
                                 .width = 6,
                                 .out_channels = 260,
                                 .kernel = {3, 3},
                                 .padding = {1, 1}},
                                 ConvShape{.batch = 5,
                                 .in_channels = 20,
                                 .height = 17,
                                 .width = 18,
                                 .out_channels = 36,
                                 .kernel = {1, 1},
                                 .stride = {2, 2}},
                                 ConvShape{.batch = 2,
                                 .in_channels = 16,
                                 .height = 33,
                                 .width = 20,
                                 .out_channels = 16,
                                 .kernel = {5, 5},
                                 .padding = {2, 2}}}) {
    ASSERT_NO_FATAL_FAILURE(compare_all(shape, random));
  }
}

TEST(Conv, TheSameBitsOnAnyNumberOfThreads) {
  std::mt19937 random(3);
  std::vector<ConvShape> shapes{{.batch = 4,
                                 .in_channels = 24,
                                 .height = 26,
                                 .width = 25,
                                 .out_channels = 40,
                                 .kernel = {3, 3},
                                 .padding = {1, 1}},
                                {.batch = 3,
                                 .in_channels = 8,
                                 .height = 23,
                                 .width = 23,
                                 .out_channels = 20,
                                 .kernel = {5, 5},
                                 .stride = {2, 2},
                                 .padding = {2, 2}}};
  for (int round = 0; round < 12; ++round) shapes.push_back(random_shape(random));
  for (const ConvShape& shape : shapes) {
    const Case it(shape, random);
    for (const Pass pass : kPasses) {
      for (const ConvAlgorithm* algorithm : conv_algorithms()) {
        if (!algorithm->takes(shape, pass)) continue;
        std::vector<float> alone;
        for (const int team : {1, 2, 5}) {
          std::vector<float> result;
          run_with_threads(team, [&] { result = it.result(*algorithm, pass, true); });
          if (team == 1) alone = result;
          ASSERT_TRUE(result.empty() || std::memcmp(alone.data(), result.data(), result.size() * sizeof(float)) == 0)
              << algorithm->name() << ", " << text(shape, pass) << ", " << team << " threads";
        }
      }
    }
  }
}

TEST(Conv, CountsAreOfTheAlgorithm) {
  const ConvShape shape{.batch = 1, .in_channels = 1, .height = 4, .width = 4, .out_channels = 1, .kernel = {3, 3}};
  EXPECT_EQ(find_conv_algorithm("direct")->cost(shape, Pass::forward).multiplications, 36);
  EXPECT_EQ(find_conv_algorithm("winograd2")->cost(shape, Pass::forward).multiplications, 16);
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const ConvShape any = random_shape(random);
    for (const ConvAlgorithm* algorithm : conv_algorithms()) {
      for (const Pass pass : kPasses) {
        if (!algorithm->takes(any, pass)) continue;
        const OpCost cost = algorithm->cost(any, pass);
        EXPECT_GE(cost.multiplications, 0);
        EXPECT_GE(cost.bytes, 4.0 * static_cast<double>(any.weight_size()));
        EXPECT_GE(cost.workspace, 0);
        EXPECT_EQ(find_conv_algorithm(algorithm->name()), algorithm);
      }
    }
  }
  EXPECT_EQ(find_conv_algorithm("none"), nullptr);
}

TEST(Conv, ShapesThatCannotBeAreNamed) {
  EXPECT_ANY_THROW(check({.batch = 1, .in_channels = 0, .height = 4, .width = 4, .out_channels = 1}));
  EXPECT_ANY_THROW(check({.batch = -1, .in_channels = 1, .height = 4, .width = 4, .out_channels = 1}));
  EXPECT_ANY_THROW(check({.batch = 1, .in_channels = 3, .height = 4, .width = 4, .out_channels = 4, .groups = 2}));
  EXPECT_ANY_THROW(check({.batch = 1, .in_channels = 1, .height = 4, .width = 4, .out_channels = 1, .kernel = {5, 5}}));
}

}  // namespace conv_test
}  // namespace trireme::ops
