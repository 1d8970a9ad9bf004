// With `deterministic` a sum is the same to the last bit whatever the algorithm, transport, cut or run: the balanced
// binary tree over ranks, computed here by plain recursion.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/collective/worlds.h"
#include "trireme/collective/run/communicator_impl.h"

namespace trireme {
namespace {

using namespace trireme::test;

std::vector<float> random_vector(int rank, std::size_t count) {
  std::mt19937 generator(static_cast<unsigned>(1000 + rank));
  std::uniform_real_distribution<float> exponent(-20, 20);
  std::vector<float> values(count);
  for (float& v : values) v = std::ldexp(exponent(generator), static_cast<int>(exponent(generator)));
  return values;
}

// ((0 + 1) + (2 + 3)) + (4 …): the left part is the largest power of two below the size.
float tree_sum(const std::vector<std::vector<float>>& inputs, std::size_t element, int first, int last) {
  if (last - first == 1) return inputs[first][element];
  int left = 1;
  while (2 * left < last - first) left *= 2;
  return tree_sum(inputs, element, first, first + left) + tree_sum(inputs, element, first + left, last);
}

class Deterministic : public ::testing::TestWithParam<WorldFactory> {};

TEST_P(Deterministic, EveryAlgorithmGivesTheCanonicalBits) {
  Options options;
  options.deterministic = true;
  for (int ranks : {2, 3, 4, 7}) {
    for (std::size_t count : {1u, 5u, 1000u, 70'001u}) {
      std::vector<std::vector<float>> inputs;
      for (int r = 0; r < ranks; ++r) inputs.push_back(random_vector(r, count));
      std::vector<float> sums;
      for (std::size_t i = 0; i < count; ++i) sums.push_back(tree_sum(inputs, i, 0, ranks));
      run_ranks(
          GetParam().make(ranks),
          [&](Communicator& comm) {
            for (const Algorithm* algorithm : algorithms_for(Collective::all_reduce)) {
              if (algorithm->shared && comm.transport() == "tcp") continue;
              comm.set_algorithm("all-reduce", algorithm->name);
              auto data = inputs[comm.rank()];
              comm.all_reduce(data);
              for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(std::memcmp(&data[i], &sums[i], sizeof sums[i]), 0)
                    << algorithm->name << ", " << ranks << " ranks, element " << i << ": " << data[i] << " not "
                    << sums[i];
              }
            }
          },
          options);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Deterministic, ::testing::ValuesIn(world_factories()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace trireme
