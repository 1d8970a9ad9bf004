// Where a schedule says that its rounds are shifts, they are what fill() says, on every rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "trireme/collective/cost/round_work.h"

namespace trireme {
namespace {

void expect_same(const Algorithm& algorithm, const Call& shape) {
  RoundReader reader(algorithm, shape, 1);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const Schedule schedule = reader.schedule(rank);
    for (int k = 0; k < schedule.rounds; ++k) {
      const Shift shift = schedule.shift(k);
      const RoundWork& work = reader.read(schedule, rank, k);
      const auto where = fmt::format("{} {} rank {} of {} count {} round {}", name(shape.what), algorithm.name, rank,
                                     shape.ranks, shape.count, k);
      const int P = shape.ranks, d = ((shift.distance % P) + P) % P;
      const auto part = [&](int r) { return schedule.parts.size(((r + shift.part) % P + P) % P); };
      const int to = (rank + d) % P, from = (rank - d + P) % P;
      const std::size_t sent = d == 0 ? 0 : part(rank), received = d == 0 ? 0 : part(from);
      ASSERT_EQ(work.sent.peers().size(), sent > 0 ? 1u : 0u) << where;
      ASSERT_EQ(work.received.peers().size(), received > 0 ? 1u : 0u) << where;
      ASSERT_EQ(d == 0 ? 0 : work.sent[to], sent) << where;
      ASSERT_EQ(d == 0 ? 0 : work.received[from], received) << where;
      ASSERT_EQ(work.reduced, shift.reduces ? received : 0) << where;
      ASSERT_EQ(work.copied, shift.copied) << where;
      ASSERT_EQ(work.folded, shift.folded) << where;
    }
  }
}

TEST(Shift, SaysWhatFillSays) {
  int with_shift = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks : {2, 3, 4, 7, 16}) {
      for (std::size_t count : {0, 1, 3, 16, 112, 1000}) {
        for (std::size_t gap : {0, 5}) {
          const Call shape{algorithm.what, 0, ranks, 0, count, count + gap};
          if (!algorithm.plan(shape).shift) continue;
          ++with_shift;
          expect_same(algorithm, shape);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(with_shift, 0);
}

TEST(Shift, RingAndRoundRobinHaveIt) {
  using enum Collective;
  for (Collective what : {all_reduce, all_gather, reduce_scatter}) {
    for (const char* algorithm : {"ring", "round-robin"}) {
      const Schedule schedule = find_algorithm(what, algorithm).plan({what, 0, 6, 0, 100, 100});
      EXPECT_TRUE(schedule.shift) << name(what) << " " << algorithm;
    }
  }
  EXPECT_TRUE(find_algorithm(all_to_all, "round-robin").plan({all_to_all, 0, 6, 0, 100, 100}).shift);
  EXPECT_FALSE(find_algorithm(all_reduce, "ring").plan({all_reduce, 0, 1, 0, 100, 100}).shift);
}

}  // namespace
}  // namespace trireme
