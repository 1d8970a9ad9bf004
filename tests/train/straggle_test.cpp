// Slow on purpose, as slow as was asked for.
#include "trireme/train/config/straggle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"

namespace trireme::train {
namespace {

std::string refusal(const char* text) {
  try {
    Straggle{text};
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Straggle, OneWorkerForGood) {
  Straggle slow("rank=1,factor=3");
  EXPECT_DOUBLE_EQ(slow.delay(1, 0, 0.01, 1), 0.02);
  EXPECT_DOUBLE_EQ(slow.delay(1, 99, 0.5, 7), 1.0);
  EXPECT_EQ(slow.delay(0, 0, 0.01, 1), 0);
  EXPECT_EQ(Straggle().delay(1, 0, 0.01, 1), 0);
}

TEST(Straggle, AnyoneAtRandom) {
  Straggle random("random,p=0.1,ms=50");
  constexpr int kSteps = 20'000;
  for (int rank : {0, 3}) {
    int held = 0;
    for (int step = 0; step < kSteps; ++step) {
      double delay = random.delay(rank, step, 0.01, 5);
      EXPECT_EQ(delay, random.delay(rank, step, 0.02, 5));  // of the step, not of when or how
      if (delay > 0) {
        EXPECT_DOUBLE_EQ(delay, 0.05);
        ++held;
      }
    }
    EXPECT_NEAR(held, kSteps * 0.1, 4 * 42);  // four standard deviations
  }
}

TEST(Straggle, SlowsNobodyWhoIsNotThere) {
  const Straggle slow("rank=2,factor=3");
  EXPECT_NO_THROW(slow.check_rank(3, "workers"));
  EXPECT_THROW(slow.check_rank(2, "workers"), ConfigError);
  EXPECT_NO_THROW(Straggle("random,p=0.1,ms=50").check_rank(1, "workers"));
  EXPECT_NO_THROW(Straggle().check_rank(1, "workers"));
}

TEST(Straggle, WrongWordsAreExplained) {
  for (const char* text : {"rank=1", "factor=3", "rank=1,factor=0.5", "rank=x,factor=3", "random", "random,p=2,ms=5",
                           "random,p=0.1", "rank=1,factor=3,ms=5", "rank=1,rank=2,factor=3", "often"}) {
    EXPECT_THAT(refusal(text), ::testing::HasSubstr("--straggle")) << text;
  }
  EXPECT_THAT(refusal("rank=1"), ::testing::HasSubstr("'factor' is missing; write rank=1,factor=3"));
  EXPECT_THAT(refusal("rank=1,factor=3,ms=5"), ::testing::HasSubstr("'ms' is not understood there"));
}

}  // namespace
}  // namespace trireme::train
