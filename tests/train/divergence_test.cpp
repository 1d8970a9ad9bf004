// Runs that learned nothing are told from those that did.
#include "trireme/train/objective/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trireme::train {
namespace {

// `steps` of a loss that goes in a line from one value to the other.
Divergence run(double from, double to, int steps, double chance) {
  Divergence watch;
  watch.set_chance(chance);
  for (int k = 0; k < steps; ++k) watch.step(from + (to - from) * k / std::max(1, steps - 1));
  return watch;
}

const double kTen = std::log(10.0);

TEST(Divergence, NothingIsSaidOfARunThatLearns) {
  EXPECT_EQ(run(2.31, 0.4, 500, kTen).verdict(0.5), "");
  EXPECT_EQ(run(2.31, 2.0, 500, kTen).verdict(2.1), "") << "slowly";
  EXPECT_EQ(run(2.31, 0.1, 500, kTen).verdict(2.9), "") << "what it saw by heart: not diverged";
  EXPECT_EQ(run(2.31, 2.31, 20, kTen).verdict(2.31), "") << "it had no time";
}

TEST(Divergence, StayingAtChanceIsSaid) {
  const auto line = run(2.40, 2.305, 500, kTen).verdict(2.304);
  EXPECT_NE(line.find("500 steps"), std::string::npos) << line;
  EXPECT_NE(line.find("no better than chance (2.3026)"), std::string::npos) << line;
  EXPECT_NE(line.find("--lr"), std::string::npos) << line;
  EXPECT_EQ(run(2.40, 2.305, 500, 0).verdict(2.304), "") << "chance is not known";
}

TEST(Divergence, RisingFarAboveTheStartIsSaidAtOnce) {
  EXPECT_NE(run(2.3, 80, 60, kTen).verdict(90).find("far above the 2.3000"), std::string::npos);
}

TEST(Divergence, LossesThatAreNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(run(2.3, 0.5, 200, kTen).verdict(kNan).find("not finite"), std::string::npos);
  auto watch = run(2.3, 0.5, 200, kTen);
  watch.step(kNan);  // one that was skipped
  EXPECT_EQ(watch.verdict(0.5), "");
}

}  // namespace
}  // namespace trireme::train
