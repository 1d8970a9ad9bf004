// The parts of products in bf16: packing by vectors and in plain C++, and the loops for tile registers, run on emulated
// ones. Where the CPU has tile registers, on those too.
#include "trireme/ops/matmul/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/ops/matmul_case.h"
#include "tests/ops/with_threads.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/algorithms.h"

namespace trireme::ops {
namespace bf16_test {

using namespace internal;
using matmul_test::Case;

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Rounded to nearest even, by arithmetic; numbers too small for a normal float are zero.
float rounded(float x) {
  if (!std::isfinite(x)) return x;
  if (std::abs(x) < std::numeric_limits<float>::min()) return std::copysign(0.0f, x);
  int exponent;
  const double mantissa = std::frexp(static_cast<double>(x), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
}

// Rows of numbers of every size, with some that are none.
std::vector<float> odd_numbers(int64_t count, std::mt19937& random) {
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& x : all) {
    const auto kind = random() % 8;
    x = kind == 0 ? from_bits(static_cast<uint32_t>(random())) : matmul_test::noise(1, random)[0];
    if (kind == 1) x = std::ldexp(x, -130);
    if (kind == 2) x = INFINITY;
  }
  return all;
}

void expect_pair_element(uint32_t pair, bool high, float x, const std::string& where) {
  const float got = from_bits(high ? pair & 0xffff0000 : pair << 16), right = rounded(x);
  if (std::isnan(x)) {
    ASSERT_TRUE(std::isnan(got)) << where;
  } else {
    ASSERT_EQ(got, right) << where << ": " << x;
  }
}

std::vector<const Bf16Packing*> packings() {
  std::vector<const Bf16Packing*> all{&bf16_plain_packing()};
  if (has_bf16()) all.push_back(&bf16_vector_packing());
  return all;
}

TEST(Bf16, PackedTilesAreTheRoundedRows) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int64_t count = 1 + static_cast<int64_t>(random() % 32), taps = 1 + static_cast<int64_t>(random() % 4);
    const int64_t run = 1 + static_cast<int64_t>(random() % (round % 2 == 0 ? 7 : 100)), even = (run + 1) / 2 * 2;
    const int64_t lines = bf16_lines(taps * even) + static_cast<int64_t>(random() % 2);
    const std::vector<float> numbers = odd_numbers(count * taps * run, random);
    std::vector<const float*> rows;
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < count; ++i) rows.push_back(numbers.data() + i * taps * run);
    for (int64_t t = 0; t < taps; ++t) offsets.push_back(t * run);
    for (const Bf16Packing* packing : packings()) {
      std::vector<uint32_t> out(static_cast<std::size_t>(lines * count * kBf16Line), 0xcdcdcdcd);
      packing->tile({rows.data(), offsets.data(), taps, run}, count, lines, out.data());
      for (int64_t at = 0; at < lines * 2 * kBf16Line; ++at) {
        const int64_t tap = at / even, l = at % even, line = at / 2 / kBf16Line;
        for (int64_t i = 0; i < count; ++i) {
          const float x = tap < taps && l < run ? rows[static_cast<std::size_t>(i)][tap * run + l] : 0;
          ASSERT_NO_FATAL_FAILURE(
              expect_pair_element(out[static_cast<std::size_t>((line * count + i) * kBf16Line + at / 2 % kBf16Line)],
                                  at % 2 == 1, x, "row " + std::to_string(i) + ", element " + std::to_string(at)));
        }
      }
    }
  }
}

TEST(Bf16, PackedStripsAreTheRoundedColumns) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const int64_t k = static_cast<int64_t>(random() % 80), count = 1 + static_cast<int64_t>(random() % 16);
    const int64_t lines = bf16_lines(k) + static_cast<int64_t>(random() % 2), width = count + 3;
    const std::vector<float> numbers = odd_numbers(std::max<int64_t>(k, 1) * width, random);
    std::vector<const float*> rows;
    for (int64_t l = 0; l < k; ++l) rows.push_back(numbers.data() + l * width);
    for (const Bf16Packing* packing : packings()) {
      std::vector<uint32_t> out(static_cast<std::size_t>(lines * kBf16Line * kBf16Strip), 0xcdcdcdcd);
      packing->strip(rows.data(), k, 2, count, lines, out.data());
      std::vector<uint32_t> tile(static_cast<std::size_t>(lines * kBf16Line * count), 0xcdcdcdcd);
      bf16_pack_tile_of_columns(*packing, rows.data(), k, 2, count, lines, tile.data());
      for (int64_t l = 0; l < lines * 2 * kBf16Line; ++l) {
        const int64_t pair = l / 2, line = pair / kBf16Line;
        for (int64_t j = 0; j < kBf16Strip; ++j) {
          const float x = l < k && j < count ? rows[static_cast<std::size_t>(l)][2 + j] : 0;
          const uint32_t got = out[static_cast<std::size_t>(pair * kBf16Strip + j)];
          ASSERT_NO_FATAL_FAILURE(expect_pair_element(got, l % 2 == 1, x, "strip"));
          if (j >= count) continue;
          ASSERT_EQ(got, tile[static_cast<std::size_t>((line * count + j) * kBf16Line + pair % kBf16Line)]);
        }
      }
    }
  }
}

TEST(Bf16, StripsOfColumnsAreTilesTurned) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const int64_t k = 1 + static_cast<int64_t>(random() % 90), count = 1 + static_cast<int64_t>(random() % 16);
    const int64_t lines = bf16_lines(k), offset = 1;
    const std::vector<float> numbers = odd_numbers(count * (k + offset), random);
    std::vector<const float*> columns;
    for (int64_t i = 0; i < count; ++i) columns.push_back(numbers.data() + i * (k + offset));
    for (const Bf16Packing* packing : packings()) {
      std::vector<uint32_t> strip(static_cast<std::size_t>(lines * kBf16Line * kBf16Strip), 0xcdcdcdcd);
      std::vector<uint32_t> tile(static_cast<std::size_t>(lines * kBf16Line * count));
      bf16_pack_strip_of_columns(*packing, columns.data(), offset, k, count, lines, strip.data());
      packing->tile({columns.data(), &offset, 1, k}, count, lines, tile.data());
      for (int64_t pair = 0; pair < lines * kBf16Line; ++pair) {
        for (int64_t j = 0; j < kBf16Strip; ++j) {
          const int64_t line = pair / kBf16Line;
          const uint32_t right =
              j < count ? tile[static_cast<std::size_t>((line * count + j) * kBf16Line + pair % kBf16Line)] : 0;
          ASSERT_EQ(strip[static_cast<std::size_t>(pair * kBf16Strip + j)], right);
        }
      }
    }
  }
}

struct Named {
  const char* name;
  const Bf16Kernel* kernel;
};

std::vector<Named> kernels() {
  std::vector<Named> all{{"emulated, plain", &bf16_emulated_kernel(false)}};
  if (has_bf16()) {
    all.push_back({"emulated, stored by vectors", &bf16_emulated_kernel(true)});
    all.push_back({"vectors", &bf16_vector_kernel()});
  }
  if (has_amx()) all.push_back({"amx", &bf16_amx_kernel()});
  return all;
}

void expect_all_kernels(const Case& it) {
  for (const auto& [name, kernel] : kernels()) {
    std::vector<float> c = it.c;
    bf16_product(*kernel, it.product(c));
    ASSERT_NO_FATAL_FAILURE(matmul_test::expect_product(it, c, name, Accuracy::bf16));
  }
}

TEST(Bf16, EveryKernelEqualsSumsInDouble) {
  std::mt19937 random(4);
  for (int round = 0; round < 150; ++round) {
    ASSERT_NO_FATAL_FAILURE(expect_all_kernels(matmul_test::make_case(round, 70, random)));
  }
}

// Every number of rows and columns of a tile, and several parts of k.
TEST(Bf16, EveryTile) {
  std::mt19937 random(5);
  for (int64_t size = 1; size <= 33; ++size) {
    Case it{size, 34 - size, size % 5 == 0 ? 1100 : 3 * size, 1, false, false, true, true, true, {}, {}, {}, {}};
    it.fill(random);
    ASSERT_NO_FATAL_FAILURE(expect_all_kernels(it));
  }
}

// Small whole numbers have no rounding at all: every kernel must give exactly the products.
TEST(Bf16, WholeNumbersAreExact) {
  std::mt19937 random(6);
  for (int round = 0; round < 40; ++round) {
    Case it = matmul_test::make_case(round, 80, random);
    it.relu = false;
    for (auto* numbers : {&it.a, &it.b, &it.c, &it.biases}) {
      for (float& x : *numbers) x = std::round(x * 50);
    }
    std::vector<float> right = it.c;
    reference_matmul().run(it.product(right));
    for (const auto& [name, kernel] : kernels()) {
      std::vector<float> c = it.c;
      bf16_product(*kernel, it.product(c));
      ASSERT_EQ(c, right) << name;
    }
  }
}

TEST(Bf16, SameBitsOnAnyNumberOfThreads) {
  std::mt19937 random(7);
  Case it{230, 50, 600, 0, true, true, true, true, false, {}, {}, {}, {}};
  it.fill(random);
  for (const auto& [name, kernel] : kernels()) {
    std::vector<float> one = it.c, many = it.c;
    run_with_threads(1, [&] { bf16_product(*kernel, it.product(one)); });
    run_with_threads(5, [&] { bf16_product(*kernel, it.product(many)); });
    EXPECT_EQ(one, many) << name;
  }
}

// Without leave for the tile registers none of them is asked for; with it, the CPU decides.
TEST(Bf16, AmxCanBeRefused) {
  allow_amx(false);
  EXPECT_FALSE(has_amx());
  EXPECT_FALSE(amx_matmul().takes(16, 16, 16));
  allow_amx(true);
  EXPECT_EQ(amx_matmul().takes(16, 16, 16), has_amx());
  if (has_amx()) {
    set_instruction_set("avx2");
    EXPECT_FALSE(has_amx());
    set_instruction_set("auto");
  }
}

// The tile registers against their emulation, sums by sums in the same order.
TEST(Bf16, AmxEqualsItsEmulation) {
  if (!has_amx()) GTEST_SKIP() << "this CPU has no AMX, or the system does not let it be used";
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const Case it = matmul_test::make_case(round, 150, random);
    std::vector<float> real = it.c, emulated = it.c;
    bf16_product(bf16_amx_kernel(), it.product(real));
    bf16_product(bf16_emulated_kernel(true), it.product(emulated));
    for (std::size_t i = 0; i < real.size(); ++i) ASSERT_NEAR(real[i], emulated[i], 2e-5) << i;
  }
}

}  // namespace bf16_test
}  // namespace trireme::ops
