#include "trireme/ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/ops/matmul_case.h"
#include "tests/ops/with_threads.h"
#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/algorithms.h"
#include "trireme/ops/matmul/kernels.h"

namespace trireme::ops::matmul_test {
namespace {

void expect_all_algorithms(int rounds, int64_t most, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int round = 0; round < rounds; ++round) {
    const Case it = make_case(round, most, random);
    for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
      if (!algorithm->takes(it.m, it.n, it.k)) continue;
      std::vector<float> c = it.c;
      algorithm->run(it.product(c));
      expect_product(it, c, std::string(algorithm->name()) + " " + instruction_set(), algorithm->accuracy());
    }
    std::vector<float> c = it.c;
    matmul(it.m, it.left(), PackedMatrix(it.k, it.n, it.right()), c.data(), it.c_stride(), it.accumulate,
           it.epilogue());
    expect_product(it, c, "packed");
  }
}

TEST(Matmul, EveryAlgorithmEqualsSumsInDouble) { expect_all_algorithms(300, 70, 1); }

// Sizes beyond what one block holds: several parts of k, of m, of n.
TEST(Matmul, LargerThanOneBlock) {
  std::mt19937 random(2);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{300, 70, 700}, {20, 4200, 33}, {530, 8, 350}, {3, 90, 2500}}) {
    Case it{m, n, k, 1, false, true, true, true, true, {}, {}, {}, {}};
    it.fill(random);
    for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
      if (!algorithm->takes(m, n, k)) continue;
      std::vector<float> c = it.c;
      algorithm->run(it.product(c));
      expect_product(it, c, std::string(algorithm->name()), algorithm->accuracy());
    }
  }
}

TEST(Matmul, EveryInstructionSet) {
  for (const std::string& name : instruction_sets()) {
    set_instruction_set(name);
    EXPECT_EQ(instruction_set(), name);
    const auto lanes = internal::matmul_kernels().lanes;
    if (name == "scalar") {
      EXPECT_TRUE(lanes == 1 || lanes == 4) << lanes;  // 4 where the compiler makes vectors of plain loops
    } else {
      EXPECT_EQ(lanes, name == "avx512" ? 16 : name == "avx2" ? 8 : 4);
    }
    expect_all_algorithms(60, 50, 3);
  }
  set_instruction_set("auto");
  EXPECT_THROW(set_instruction_set("avx9000"), ConfigError);
}

// The other factor's rows are used as they lie and the result is turned: sizes about whole panels, far apart enough.
// The same bits as of a packed factor.
TEST(Matmul, FewRowsAndLongOnes) {
  std::mt19937 random(6);
  for (const std::string& name : instruction_sets()) {
    set_instruction_set(name);
    const int64_t wide = 2 * internal::matmul_kernels().panel;
    for (const int64_t m : {wide, 2 * wide - 1}) {
      const int64_t k = 512 + static_cast<int64_t>(random() % 700), n = (1 << 17) / k + 1 + random() % 40;
      Case it{m, n, k, m == wide ? 0 : 3, random() % 2 == 0, true, false, m != wide, random() % 2 == 0, {}, {}, {}, {}};
      it.fill(random);
      std::vector<float> c = it.c, packed = it.c;
      run_with_threads(2, [&] { tiled_matmul().run(it.product(c)); });
      expect_product(it, c, name);
      matmul(m, it.left(), PackedMatrix(k, n, it.right()), packed.data(), it.c_stride(), false, it.epilogue());
      EXPECT_EQ(c, packed) << name;
    }
  }
  set_instruction_set("auto");
}

// What was packed for one set is read by its own kernels, whatever is allowed later.
TEST(Matmul, PackedBeforeALimit) {
  std::mt19937 random(4);
  const Case it = make_case(1, 64, random);
  const PackedMatrix right(it.k, it.n, it.right());
  set_instruction_set(instruction_sets().back());
  std::vector<float> c = it.c;
  matmul(it.m, it.left(), right, c.data(), it.c_stride(), it.accumulate, it.epilogue());
  set_instruction_set("auto");
  expect_product(it, c, "packed");
}

TEST(Matmul, SameBitsOnAnyNumberOfThreads) {
  std::mt19937 random(5);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{400, 90, 700}, {16, 700, 256}, {9, 1300, 40}, {700, 10, 400}}) {
    Case it{m, n, k, 0, false, false, true, true, false, {}, {}, {}, {}};
    it.fill(random);
    for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
      if (!algorithm->takes(m, n, k)) continue;
      std::vector<float> one = it.c, many = it.c;
      run_with_threads(1, [&] { algorithm->run(it.product(one)); });
      run_with_threads(5, [&] { algorithm->run(it.product(many)); });
      EXPECT_EQ(one, many) << algorithm->name();
    }
    std::vector<float> one = it.c, inside = it.c;
    const PackedMatrix packed(k, n, it.right());
    run_with_threads(1, [&] { tiled_matmul().run(it.product(one)); });
    run_with_threads(3, [&] { matmul(m, it.left(), packed, inside.data(), n, true, it.epilogue()); });
    EXPECT_EQ(one, inside);
  }
}

TEST(Matmul, BatchIsManyProducts) {
  std::mt19937 random(6);
  for (const int64_t count : {0, 1, 2, 3, 36}) {
    const int64_t m = 137, n = 41, k = 29;
    const auto a = noise(count * m * k, random), b = noise(count * k * n, random),
               before = noise(count * m * n, random);
    std::vector<float> batch = before, packed = before, single = before;
    std::vector<PackedMatrix> rights;
    for (int64_t i = 0; i < count; ++i) {
      rights.emplace_back(k, n, Matrix{b.data() + i * k * n, n});
      matmul(m, n, k, {a.data() + i * m * k, k}, {b.data() + i * k * n, n}, single.data() + i * m * n, n, true);
    }
    const BatchSteps steps{m * k, k * n, m * n};
    run_with_threads(4, [&] {
      matmul_batch(count, m, n, k, {a.data(), k}, {b.data(), n}, batch.data(), n, steps, true);
      matmul_batch(m, {a.data(), k}, rights, packed.data(), n, steps, true);
    });
    EXPECT_EQ(batch, single);
    EXPECT_EQ(packed, single);
  }
}

// ReLU lets through what is not a number, as LibTorch's.
TEST(Matmul, NotANumberStays) {
  const std::vector<float> a{NAN, 1}, b{1};
  for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
    std::vector<float> c(2);
    if (!algorithm->takes(2, 1, 1)) continue;
    algorithm->run({2, 1, 1, {a.data(), 1}, {b.data(), 1}, c.data(), 1, false, {nullptr, true}});
    EXPECT_TRUE(std::isnan(c[0])) << algorithm->name();
    EXPECT_EQ(c[1], 1) << algorithm->name();
  }
}

TEST(Matmul, TheListHasNames) {
  EXPECT_EQ(matmul_algorithms().front()->name(), "reference");
  for (const MatmulAlgorithm* algorithm : matmul_algorithms()) {
    EXPECT_EQ(find_matmul_algorithm(algorithm->name()), algorithm);
    EXPECT_FALSE(algorithm->what().empty());
    EXPECT_EQ(algorithm->cost(3, 5, 7).multiplications, 105) << algorithm->name();
  }
  EXPECT_EQ(find_matmul_algorithm("unknown"), nullptr);
}

}  // namespace
}  // namespace trireme::ops::matmul_test
