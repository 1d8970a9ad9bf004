#include "trireme/base/clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace trireme {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, PassesWhenItsTimeIsUp) {
  auto deadline = Deadline::in(20ms);
  EXPECT_FALSE(deadline.passed());
  EXPECT_GT(deadline.left(), 0ns);
  EXPECT_LE(deadline.left(), 20ms);
  std::this_thread::sleep_for(21ms);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.left(), 0ns);
  EXPECT_EQ(deadline.left_ms(), 0);
}

TEST(Deadline, MillisecondsAreRoundedUp) {
  auto deadline = Deadline::in(100ms + 1ns);
  EXPECT_GE(deadline.left_ms(), 1);
  EXPECT_LE(deadline.left_ms(), 101);
}

TEST(Deadline, RemembersItsSpan) {
  EXPECT_DOUBLE_EQ(Deadline::in(1500ms).span_seconds(), 1.5);
  EXPECT_NEAR(Deadline::in_seconds(0.25).span_seconds(), 0.25, 1e-9);
}

TEST(Deadline, NothingOrLessHasPassedAtOnce) {
  for (double seconds : {0.0, -1.0, -1e300, std::nan(""), -std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(Deadline::in_seconds(seconds).passed()) << seconds;
    EXPECT_EQ(Deadline::in_seconds(seconds).left_ms(), 0) << seconds;
  }
  EXPECT_TRUE(Deadline::in(Duration::min()).passed());
}

TEST(Deadline, NoSpanIsTooLong) {
  for (double seconds : {1e8, 1e12, 1e300, std::numeric_limits<double>::infinity()}) {
    auto deadline = Deadline::in_seconds(seconds);
    EXPECT_FALSE(deadline.passed()) << seconds;
    EXPECT_EQ(deadline.left_ms(), std::numeric_limits<int>::max()) << seconds;
  }
  EXPECT_FALSE(Deadline::in(Duration::max()).passed());
}

TEST(Clock, SecondsRunForward) {
  double before = now_seconds();
  std::this_thread::sleep_for(2ms);
  EXPECT_GE(now_seconds() - before, 0.002);
}

}  // namespace
}  // namespace trireme
