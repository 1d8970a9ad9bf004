#include "trireme/cli/bench/judged.h"

#include <gtest/gtest.h>

namespace trireme::bench {
namespace {

TEST(Judged, KendallCountsPairs) {
  EXPECT_DOUBLE_EQ(kendall({1, 2, 3}, {10, 20, 30}), 1);
  EXPECT_DOUBLE_EQ(kendall({1, 2, 3}, {3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(kendall({1, 2, 3, 4}, {1, 3, 2, 4}), 4.0 / 6);
  EXPECT_NEAR(kendall({1, 1, 2}, {1, 2, 3}), 2 / std::sqrt(6.0), 1e-12);  // one tie
  EXPECT_DOUBLE_EQ(kendall({1}, {1}), 1);
  // 1 and 1.05 are taken for the same: two of three pairs are left, and both agree.
  const auto apart = kendall_apart({2, 1, 3}, {1, 1.05, 2}, 0.1);
  EXPECT_DOUBLE_EQ(apart.kendall, 1);
  EXPECT_DOUBLE_EQ(apart.share, 2.0 / 3);
}

TEST(Judged, QuantilesLieBetween) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.95), 9.5);
  EXPECT_DOUBLE_EQ(quantile({}, 0.5), 0);
}

TEST(Judged, ErrorAndSpreadAreRelative) {
  const Judged one{"", "", 1.1, {1.0, 0.9, 1.2}};
  EXPECT_DOUBLE_EQ(one.measured(), 1.0);
  EXPECT_NEAR(one.error(), 0.1, 1e-12);
  // 1.0 against 1.05, 0.9 against 1.1, 1.2 against 0.95.
  EXPECT_NEAR(one.spread(), 0.25 / 1.2, 1e-12);
}

}  // namespace
}  // namespace trireme::bench
