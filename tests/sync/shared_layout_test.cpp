// What the runtime and the simulator both compute, from the same headers.
#include <gtest/gtest.h>

#include "trireme/collective/least_sent.h"
#include "trireme/sync/exchange/bucket_layout.h"
#include "trireme/sync/exchange/rehearsal.h"
#include "trireme/sync/exchange/step_notes.h"
#include "trireme/sync/exchange/turn.h"

namespace trireme::sync {
namespace {

static_assert(note_count(0) == kTold + kToldNumbers);
static_assert(note_count(10) - note_count(0) == 10, "one for each parameter");
static_assert(padded(17, bucket_line(4)) == 32 && padded(32, bucket_line(4)) == 32);
static_assert(carries_notes(2, kInPlaceFrom) && !carries_notes(1, kInPlaceFrom));
static_assert(usual_turn(true, false) == Turn::in_line && usual_turn(false, false) == Turn::background);
static_assert(has_spare_core(2, 1, 3) && !has_spare_core(2, 1, 2));

TEST(SharedLayout, RehearsedSecondsAreStraightLinesThatNeverFall) {
  RehearsedSeconds seconds;
  seconds.add(100, 1);
  seconds.add(200, 3);
  seconds.add(300, 2);  // noise
  EXPECT_DOUBLE_EQ(seconds(0), 1);
  EXPECT_DOUBLE_EQ(seconds(150), 2);
  EXPECT_DOUBLE_EQ(seconds(250), 3);
  EXPECT_DOUBLE_EQ(seconds(1000), 3);
  RehearsedSeconds rising;
  rising.add(100, 1);
  rising.add(200, 2);
  EXPECT_DOUBLE_EQ(rising(1000), 10);
}

TEST(SharedLayout, ARehearsalIsNearASquareAndNoLongerThanNeeded) {
  EXPECT_EQ(Rehearsal::rows(64 * 64), 64u);
  EXPECT_EQ(Rehearsal::rows(2 * 64 * 64), 64u);
  EXPECT_EQ(Rehearsal::rows(7), 1u);
  EXPECT_EQ(Rehearsal::longest(1), Rehearsal::kLeast);
  EXPECT_EQ(Rehearsal::longest(std::size_t{1} << 40), Rehearsal::kLargest);
}

TEST(SharedLayout, LeastSentIsThatOfTheBestAlgorithm) {
  EXPECT_EQ(least_sent(Collective::all_reduce, 1000, 0, 0, 4), 1500u);
  EXPECT_EQ(least_sent(Collective::all_gather, 1000, 0, 0, 4), 3000u);
  EXPECT_EQ(least_sent(Collective::broadcast, 1000, 1, 0, 4), 0u);
  EXPECT_EQ(least_sent(Collective::broadcast, 1000, 1, 1, 4), 1000u);
  EXPECT_EQ(least_sent(Collective::barrier, 0, 0, 0, 4), 0u);
}

}  // namespace
}  // namespace trireme::sync
