#include "trireme/collective/reduce/reduce.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/collective/fold_oracle.h"
#include "trireme/base/error.h"
#include "trireme/collective/schedule.h"

namespace trireme::reduce_test {
namespace {

// The SIMD targets of this machine that kernels are compiled for, each of which the tests force in turn.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> out;
  for (auto rest = static_cast<std::uint64_t>(hwy::SupportedTargets()); rest; rest &= rest - 1) {
    const auto target = std::int64_t{1} << std::countr_zero(rest);
    if (target != HWY_SSSE3 && target != HWY_AVX3_DL) out.push_back(target);
  }
  return out;
}

class Forced {
 public:
  explicit Forced(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~Forced() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// A buffer at a chosen distance from a 64-byte boundary, with guards on both sides.
class Placed {
 public:
  Placed(std::size_t bytes, std::size_t shift) : memory_(bytes + 4 * 64), bytes_(bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = (64 - at % 64) % 64 + shift;
    if (start_ < 32) start_ += 64;
    std::memset(data() - 32, 0xcd, bytes + 64);
  }
  std::byte* data() { return memory_.data() + start_; }
  void fill(const Bytes& from) { std::copy_n(from.begin(), bytes_, data()); }
  bool guarded() {
    static const Bytes clean(32, std::byte{0xcd});
    return std::memcmp(data() - 32, clean.data(), 32) == 0 && std::memcmp(data() + bytes_, clean.data(), 32) == 0;
  }

 private:
  Bytes memory_;
  std::size_t bytes_, start_;
};

constexpr std::size_t kLengths[] = {0, 1, 7, 63, 64, 65, 1000};
constexpr std::size_t kMost = 1000;

// How buffer b of a call is placed: all aligned, all shifted alike by elements, each differently, by odd bytes.
std::size_t shift_of(int placement, std::size_t b, std::size_t element) {
  constexpr int kPlacements[][2] = {{0, 0}, {3, 0}, {1, 1}, {0, 1}};
  if (placement == 3) return (b * 7 + 1) % 64;
  return (kPlacements[placement][0] + kPlacements[placement][1] * b) * element % 64;
}

struct Case {
  std::size_t elements;
  int placement;
  std::size_t outs;
  Store store;
  bool in_place;
};

// A failing case in words, empty if it passes.
std::string try_fold(DType type, Op op, const std::vector<Bytes>& data, const Bytes& want, const Case& c) {
  const std::size_t bytes = c.elements * size_of(type);
  std::vector<Placed> buffers;
  std::vector<const void*> ins;
  std::vector<void*> outs;
  for (std::size_t b = 0; b < data.size() + (c.in_place ? 0 : c.outs); ++b) {
    buffers.emplace_back(bytes, shift_of(c.placement, b, size_of(type)));
    if (b < data.size()) {
      buffers.back().fill(data[b]);
      ins.push_back(buffers.back().data());
    }
  }
  for (std::size_t j = 0; j < c.outs; ++j) outs.push_back(buffers[buffers.size() - 1 - j].data());
  fold_function(type, op)(ins, outs, c.elements, c.store);

  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const bool written = b >= buffers.size() - c.outs;
    const auto at = first_difference(type, buffers[b].data(), written ? want.data() : data[b].data(), c.elements);
    if (at >= 0 || !buffers[b].guarded()) {
      return fmt::format("{} {} k={} n={} placement={} outs={} store={} in_place={}: buffer {} at {}", name(type),
                         name(op), data.size(), c.elements, c.placement, c.outs, static_cast<int>(c.store), c.in_place,
                         b, at);
    }
  }
  return {};
}

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, FoldIsTheCanonicalTreeEverywhere) {
  const DType type = GetParam();
  std::mt19937_64 random(7);
  int turn = 0;
  for (const Op op : kOps) {
    if (!defined(type, op)) continue;
    for (const int k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33}) {
      std::vector<Bytes> data;
      for (int r = 0; r < k; ++r) data.push_back(random_elements(type, kMost, random));
      const Bytes want = expected_fold(type, op, data, kMost);
      for (const auto target : targets()) {
        const Forced forced(target);
        for (const std::size_t n : kLengths) {
          // Every combination at one length; at the others, a seventh of them in turn.
          for (int variant = n == 65 ? 0 : turn++ % 7; variant < 48; variant += n == 65 ? 1 : 7) {
            const Case c{n, (variant + variant / 4) % 4, static_cast<std::size_t>(variant / 4 % 3 + 1),
                         variant / 12 % 2 ? Store::streaming : Store::plain, variant / 24 == 1};
            if (c.in_place && c.outs > data.size()) continue;
            ASSERT_EQ(try_fold(type, op, data, want, c), "") << "target " << target;
          }
        }
      }
    }
  }
}

TEST_P(EveryType, ReduceIsOneStepOfTheTree) {
  const DType type = GetParam();
  std::mt19937_64 random(11);
  for (const Op op : kOps) {
    if (!defined(type, op)) continue;
    const std::vector<Bytes> data{random_elements(type, kMost, random), random_elements(type, kMost, random)};
    const Bytes want = expected_fold(type, op == Op::avg ? Op::sum : op, data, kMost);
    for (const auto target : targets()) {
      const Forced forced(target);
      for (const std::size_t n : kLengths) {
        for (int placement = 0; placement < 4; ++placement) {
          Placed into(n * size_of(type), shift_of(placement, 0, size_of(type)));
          Placed from(n * size_of(type), shift_of(placement, 1, size_of(type)));
          into.fill(data[0]);
          from.fill(data[1]);
          reduce_function(type, op)(into.data(), from.data(), n);
          ASSERT_EQ(first_difference(type, into.data(), want.data(), n), -1) << name(op) << " n=" << n;
          ASSERT_TRUE(into.guarded());
        }
      }
    }
  }
}

TEST_P(EveryType, DivideRoundsOnceOrTruncates) {
  const DType type = GetParam();
  std::mt19937_64 random(13);
  const Bytes data = random_elements(type, kMost, random);
  for (const int by : {1, 2, 3, 7, 8, 1000}) {
    Bytes want = data;
    with_type(type, [&](auto get, auto put, auto) {
      for (std::size_t i = 0; i < kMost; ++i) put(want.data(), i, quotient(get(data.data(), i), by));
    });
    for (const auto target : targets()) {
      const Forced forced(target);
      for (const std::size_t n : kLengths) {
        Placed at(n * size_of(type), 1);
        at.fill(data);
        divide(type, at.data(), n, by);
        ASSERT_EQ(first_difference(type, at.data(), want.data(), n), -1) << "by " << by << " n=" << n;
        ASSERT_TRUE(at.guarded());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, EveryType, testing::ValuesIn(kDTypes),
                         [](const auto& type) { return std::string(name(type.param)); });

// Every 16-bit pattern is read right, and written right when doubled and halved in f32 between.
TEST(SmallFloats, EveryPatternIsReadAndRounded) {
  for (const DType type : {DType::f16, DType::bf16}) {
    constexpr std::size_t n = 65536;
    Bytes data(2 * n), third(2 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(data.data() + 2 * i, &bits, 2);
    }
    with_type(type, [&](auto get, auto put, auto) {
      for (std::size_t i = 0; i < n; ++i) put(third.data(), i, get(data.data(), i) / 3);
    });
    for (const auto target : targets()) {
      const Forced forced(target);
      Bytes got = data;
      divide(type, got.data(), n, 3);
      EXPECT_EQ(first_difference(type, got.data(), third.data(), n), -1) << name(type) << " target " << target;
    }
  }
}

TEST(Reduce, NanWinsEverywhereInMinAndMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Op op : {Op::min, Op::max}) {
    float into[] = {nan, 1, nan, -0.0f, 0.0f};
    const float from[] = {1, nan, nan, 0.0f, -0.0f};
    reduce_function(DType::f32, op)(into, from, 5);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(into[i])) << i;
    for (int i = 3; i < 5; ++i) EXPECT_EQ(std::signbit(into[i]), op == Op::min) << i;
  }
}

TEST(Reduce, BitwiseOnFloatsIsAnErrorInOneLine) {
  for (const DType type : kDTypes) {
    for (const Op op : kOps) {
      if (defined(type, op)) {
        EXPECT_NE(reduce_function(type, op), nullptr);
        continue;
      }
      try {
        fold_function(type, op);
        FAIL() << "accepted " << name(op) << " on " << name(type);
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name(op))));
        EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name(type))));
        EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n")));
      }
      EXPECT_THROW(reduce_function(type, op), ConfigError);
    }
  }
}

TEST(CopyBytes, EveryAlignmentAndLength) {
  std::mt19937_64 random(17);
  const Bytes data = random_elements(DType::u8, 5000, random);
  for (const Store store : {Store::plain, Store::streaming}) {
    for (const auto target : targets()) {
      const Forced forced(target);
      for (const std::size_t n : {0, 1, 15, 63, 64, 65, 127, 1000, 5000}) {
        for (const std::size_t shift : {0, 1, 8, 63}) {
          Placed from(n, shift), to(n, (shift * 5 + 2) % 64);
          from.fill(data);
          copy_bytes(to.data(), from.data(), n, store);
          ASSERT_TRUE(std::equal(data.begin(), data.begin() + n, to.data())) << n << ' ' << shift;
          ASSERT_TRUE(to.guarded());
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme::reduce_test
