// The benchmark's closed forms against a plain sequential computation.
#include "trireme/cli/bench/pattern.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::bench {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kCount = 29;  // more than two periods, not a multiple

Job job_of(Collective what, DType dtype, Op op, int rank, int ranks) {
  return {{what, rank, ranks, 0, kCount, kCount}, dtype, op};
}

struct Buffers {
  Bytes in, out;
};

// Every rank's buffers of rotating buffer `buffer`, filled.
std::vector<Buffers> fill_all(Collective what, DType dtype, Op op, int ranks, int buffer) {
  std::vector<Buffers> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    Job job = job_of(what, dtype, op, rank, ranks);
    all[rank].in.resize(input_elements(job.call) * size_of(dtype));
    all[rank].out.resize(output_elements(job.call) * size_of(dtype));
    std::byte* in = all[rank].in.data();
    fill(job, buffer, in, in_place(what) ? in : all[rank].out.data());
  }
  return all;
}

template <typename T>
T element(const Bytes& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
  return value;
}

template <typename T>
void put(Bytes& bytes, std::size_t i, T value) {
  std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
}

template <typename T>
T apply(Op op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (op == Op::band) return a & b;
    if (op == Op::bor) return a | b;
    if (op == Op::bxor) return a ^ b;
  }
  if (op == Op::min) return std::min(a, b);
  if (op == Op::max) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {  // wraps
    auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(op == Op::prod ? x * y : x + y);
  } else {
    return op == Op::prod ? a * b : a + b;
  }
}

// One all-reduce in place, in T's own arithmetic.
template <typename T>
void all_reduce(std::vector<Buffers>& all, Op op) {
  for (std::size_t i = 0; i < kCount; ++i) {
    T sum = element<T>(all[0].in, i);
    for (std::size_t rank = 1; rank < all.size(); ++rank) sum = apply(op, sum, element<T>(all[rank].in, i));
    if (op == Op::avg) sum = static_cast<T>(sum / static_cast<T>(all.size()));
    for (auto& buffers : all) put(buffers.in, i, sum);
  }
}

template <typename T>
void expect_all_reduce(DType dtype) {
  for (Op op : kOps) {
    if (!defined(dtype, op)) continue;
    for (int ranks : {1, 2, 3, 4, 7}) {
      for (int buffer : {0, 5}) {
        auto all = fill_all(Collective::all_reduce, dtype, op, ranks, buffer);
        int most = std::min(12, most_uses(job_of(Collective::all_reduce, dtype, op, 0, ranks)));
        for (int uses = 1; uses <= most; ++uses) {
          all_reduce<T>(all, op);
          Job job = job_of(Collective::all_reduce, dtype, op, ranks - 1, ranks);
          ASSERT_EQ(count_errors(job, buffer, uses, all[ranks - 1].in.data()), 0U)
              << name(dtype) << ' ' << name(op) << ", " << ranks << " ranks, use " << uses;
        }
      }
    }
  }
}

TEST(BenchPattern, AllReduceStaysExactOverItsUses) {
  expect_all_reduce<float>(DType::f32);
  expect_all_reduce<double>(DType::f64);
  expect_all_reduce<std::int8_t>(DType::i8);
  expect_all_reduce<std::uint8_t>(DType::u8);
  expect_all_reduce<std::int32_t>(DType::i32);
  expect_all_reduce<std::int64_t>(DType::i64);
}

// Moves blocks as the collective's definition says.
void move_blocks(Collective what, std::vector<Buffers>& all) {
  const std::size_t block = kCount * 4;
  auto copy = [&](int from, std::size_t from_block, int to, std::size_t to_block) {
    std::memcpy(&all[to].out[to_block * block], &all[from].in[from_block * block], block);
  };
  const int ranks = static_cast<int>(all.size());
  for (int a = 0; a < ranks; ++a) {
    if (what == Collective::broadcast && a > 0) all[a].in = all[0].in;
    if (what == Collective::scatter) copy(0, a, a, 0);
    if (what == Collective::gather) copy(a, 0, 0, a);
    for (int b = 0; b < ranks; ++b) {
      if (what == Collective::all_gather) copy(a, 0, b, a);
      if (what == Collective::all_to_all) copy(a, b, b, a);
    }
  }
}

TEST(BenchPattern, MovingCollectivesEndWhereTheyShould) {
  for (Collective what : {Collective::broadcast, Collective::scatter, Collective::gather, Collective::all_gather,
                          Collective::all_to_all}) {
    for (int ranks : {1, 2, 5}) {
      auto all = fill_all(what, DType::f32, Op::sum, ranks, 3);
      move_blocks(what, all);
      for (int rank = 0; rank < ranks; ++rank) {
        Job job = job_of(what, DType::f32, Op::sum, rank, ranks);
        Bytes& out = in_place(what) ? all[rank].in : all[rank].out;
        EXPECT_EQ(count_errors(job, 3, 9, out.data()), 0U) << name(what) << " rank " << rank << " of " << ranks;
        if (out.empty()) continue;
        out.back() ^= std::byte{1};
        EXPECT_EQ(count_errors(job, 3, 9, out.data()), 1U) << name(what);
      }
    }
  }
}

TEST(BenchPattern, ReduceAndReduceScatterSumTheirBlock) {
  constexpr int kRanks = 3;
  for (Collective what : {Collective::reduce, Collective::reduce_scatter}) {
    auto all = fill_all(what, DType::i32, Op::sum, kRanks, 1);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (what == Collective::reduce && rank != 0) continue;
      std::size_t first = what == Collective::reduce ? 0 : rank * kCount;
      for (std::size_t i = 0; i < kCount; ++i) {
        std::int32_t sum = 0;
        for (auto& buffers : all) sum += element<std::int32_t>(buffers.in, first + i);
        put(all[rank].out, i, sum);
      }
      EXPECT_EQ(count_errors(job_of(what, DType::i32, Op::sum, rank, kRanks), 1, 4, all[rank].out.data()), 0U);
    }
  }
}

TEST(BenchPattern, UntouchedOutputsAreErrors) {
  for (Collective what : kCollectives) {
    auto all = fill_all(what, DType::f32, Op::sum, 4, 0);
    Job job = job_of(what, DType::f32, Op::sum, 1, 4);
    Bytes& out = in_place(what) ? all[1].in : all[1].out;
    if (out.empty()) continue;
    EXPECT_GT(count_errors(job, 0, 1, out.data()), 0U) << name(what);
  }
}

TEST(BenchPattern, HalfPrecisionPatternsAreWhatTheTypesHold) {
  // bf16 is the upper half of an f32; f16 of 1 is 0x3c00.
  auto wide = fill_all(Collective::broadcast, DType::f32, Op::sum, 1, 2);
  auto brain = fill_all(Collective::broadcast, DType::bf16, Op::sum, 1, 2);
  auto half = fill_all(Collective::broadcast, DType::f16, Op::sum, 1, 2);
  for (std::size_t i = 0; i < kCount; ++i) {
    auto bits = element<std::uint32_t>(wide[0].in, i);
    EXPECT_EQ(element<std::uint16_t>(brain[0].in, i), bits >> 16);
    auto value = element<float>(wide[0].in, i);
    auto h = element<std::uint16_t>(half[0].in, i);
    float decoded = h == 0 ? 0 : std::ldexp(1 + static_cast<float>(h & 0x3ff) / 1024, (h >> 10) - 15);
    EXPECT_EQ(decoded, value);
  }
}

TEST(BenchPattern, TooNarrowTypesAreRefused) {
  EXPECT_THROW(require_exact(job_of(Collective::all_reduce, DType::bf16, Op::avg, 0, 32)), ConfigError);
  EXPECT_NO_THROW(require_exact(job_of(Collective::all_reduce, DType::f32, Op::sum, 0, 256)));
}

}  // namespace
}  // namespace trireme::bench
