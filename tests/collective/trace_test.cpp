#include "trireme/collective/draw/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"

namespace trireme {
namespace {

TEST(Trace, EveryAlgorithmEndsWithWhatItPromises) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks : {1, 2, 3, 4, 6, 8, 9}) {
      for (std::size_t count : {0, 1, 3, 8}) {
        Call call{algorithm.what, 0, ranks, ranks / 2, count, count};
        SCOPED_TRACE(fmt::format("{} {} ranks {} count {}", name(algorithm.what), algorithm.name, ranks, count));
        if (algorithm.what == Collective::barrier && algorithm.shared) continue;  // a synchronization, no steps
        Trace trace(algorithm, call);
        for (int rank = 0; rank < ranks; ++rank) {
          for (std::size_t at = 0; at < trace.size(Buffer::output); ++at) {
            if (int wanted = trace.wanted(rank, at)) {
              ASSERT_EQ(trace.held(trace.rounds() - 1, rank, Buffer::output, at), wanted);
            }
          }
        }
      }
    }
  }
}

TEST(Trace, RingByHand) {
  Trace trace(find_algorithm(Collective::all_reduce, "ring"), {Collective::all_reduce, 0, 3, 0, 3, 3});
  EXPECT_EQ(trace.chunks(Buffer::output), (std::vector<std::size_t>{0, 1, 2, 3}));
  // In the first round rank 0 sends its chunk 2 to rank 1, which adds its own.
  const Value& sum = trace.values()[trace.held(0, 1, Buffer::output, 2)];
  EXPECT_EQ(sum.element, 2);
  EXPECT_EQ(sum.ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(trace.moves(0).size(), 3u);
}

TEST(Trace, ElementsTreatedAlikeAreOneChunk) {
  Trace trace(find_algorithm(Collective::all_reduce, "ring"), {Collective::all_reduce, 0, 4, 0, 10, 10});
  EXPECT_EQ(trace.chunks(Buffer::output), (std::vector<std::size_t>{0, 3, 6, 8, 10}));
}

TEST(Trace, ForgetsScratchThatNobodyReadsAgain) {
  Trace trace(find_algorithm(Collective::reduce_scatter, "ring"), {Collective::reduce_scatter, 0, 4, 0, 1, 1});
  for (int rank = 0; rank < 4; ++rank) {
    for (std::size_t at = 0; at < trace.size(Buffer::scratch); ++at) {
      EXPECT_EQ(trace.held(trace.rounds() - 1, rank, Buffer::scratch, at), 0);
    }
  }
}

TEST(Trace, RefusesWhatIsTooMuchToDraw) {
  EXPECT_THROW(Trace(find_algorithm(Collective::all_reduce, "ring"), {Collective::all_reduce, 0, 1000, 0, 1000, 1000}),
               ConfigError);
}

}  // namespace
}  // namespace trireme
